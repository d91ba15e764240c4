#!/usr/bin/env bash
# Limber as a part of another project: as_part.sh SOURCE SCRATCH. Configures only; the parent must get neither our tests
# and benchmarks nor our warnings, and its own files must be compiled as C++20.
set -euo pipefail
source=$1 scratch=$2
rm -rf "$scratch"
mkdir -p "$scratch"
cat >"$scratch/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.22)
project(parent CXX)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
add_subdirectory($source limber)
add_executable(parent main.cpp)
target_link_libraries(parent limber)
END
echo 'int main() {}' >"$scratch/main.cpp"
cmake -S "$scratch" -B "$scratch/build" -G Ninja >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
# The same through FetchContent, which finds the source here instead of on the network, and installs nothing of ours.
mkdir "$scratch/fetch"
cat >"$scratch/fetch/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.22)
project(fetcher CXX)
include(FetchContent)
FetchContent_Declare(limber URL https://example.org/limber.tar.gz)
FetchContent_MakeAvailable(limber)
add_executable(fetcher ../main.cpp)
target_link_libraries(fetcher PRIVATE limber::limber)
install(TARGETS fetcher)
END
cmake -S "$scratch/fetch" -B "$scratch/fetch/build" -G Ninja -DFETCHCONTENT_SOURCE_DIR_LIMBER="$source" \
  -DFETCHCONTENT_FULLY_DISCONNECTED=ON >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
ninja -C "$scratch/fetch/build" -t targets all | grep -q 'unit_\|bench_\|limber_cli:' && { echo "FetchContent builds our tests"; exit 1; }
grep -rq 'limberTargets\|limber.hpp' "$scratch/fetch/build" --include=cmake_install.cmake && { echo "the parent installs us"; exit 1; }
commands=$(grep -A1 -B1 '"command".*main.cpp' "$scratch/build/compile_commands.json")
fail() { echo "$1: $commands"; exit 1; }
grep -q -- '-std=gnu++20\|-std=c++20' <<<"$commands" || fail "C++20 is not passed on"
grep -q -- 'EIGEN_NO_CPUID' <<<"$commands" || fail "Eigen would ask the CPU for its caches"
grep -q -- 'EIGEN_MAX_ALIGN_BYTES=64' <<<"$commands" || fail "Eigen's alignment is not passed on"
grep -q -- '-Wall\|-Werror\|-march' <<<"$commands" && fail "our options leak into the parent"
ninja -C "$scratch/build" -t targets all | grep -q 'unit_\|bench_' && { echo "tests or benchmarks are built"; exit 1; }
exit 0
