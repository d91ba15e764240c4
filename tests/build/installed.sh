#!/usr/bin/env bash
# The installed package, used from an empty folder: installed.sh SOURCE BUILD SCRATCH. The examples are copied out of the
# source, built with find_package, one of them with pkg-config as well, and run.
set -euo pipefail
source=$1 build=$2 scratch=$3
rm -rf "$scratch"
mkdir -p "$scratch/work"
cmake --install "$build" --prefix "$scratch/first" >"$scratch/log" || { cat "$scratch/log"; exit 1; }
mv "$scratch/first" "$scratch/prefix"  # packages get moved; nothing in it may know where it was installed
prefix=$scratch/prefix
cp -r "$source/examples/bar" "$source/examples/own-mesh" "$source/examples/own-method" "$scratch/work/"
cd "$scratch/work"
fail() { echo "$*" >&2; exit 1; }

# Not one file of the package mentions the source or the build.
grep -rIl -e "$source" -e "$build" "$prefix/include" "$prefix/lib"*/cmake "$prefix/lib"*/pkgconfig 2>/dev/null |
  grep . && fail "the files above name the source or build folder"

# One configuration for all three: the same as three, and faster.
cat >CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.22)
project(all CXX)
find_package(limber 0.1 REQUIRED)
foreach(name bar own-mesh own-method)
  add_subdirectory(\${name})
endforeach()
END
cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
# (The scratch folder itself may lie inside the source folder.)
grep -q -e "$source/limber/" -e "$source/apps/" -e "$source/examples/" build/compile_commands.json &&
  fail "the examples are compiled with files of the source folder"
grep -q -- '-Wall\|-Werror\|-march' build/compile_commands.json && fail "our options leak into the package"
ninja -C build >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }

# The same scene through the installed command and through the library: the same bits.
build/bar/bar | tee bar.txt
sed -n '/R"({/,/})"/p' bar/bar.cpp | sed '1s/.*R"(//; $s/)".*//' >bar.json
"$prefix/bin/limber" run bar.json -q --json -o bar-run >bar-run.json
command=$(sed -n 's/.*"hash": "\([0-9a-f]*\)".*/\1/p' bar-run.json)
[ -n "$command" ] && [ "hash $command" = "$(tail -n 1 bar.txt)" ] || fail "the command ends with $command"

# A run folder that the command can read.
build/own-mesh/own-mesh out/ring
for file in index.html replay.lmr steps.csv; do [ -s "out/ring/$file" ] || fail "out/ring has no $file"; done
"$prefix/bin/limber" export out/ring --format vtu -o ring-vtu >/dev/null && [ -s ring-vtu/ring.pvd ] || fail "out/ring cannot be exported"

build/own-method/own-method run own-method/bar.json -q -o out/own --steps 3
[ -s out/own/index.html ] || fail "own-method left no page"

# pkg-config.
export PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name limber.pc)")
[ "$(pkg-config --modversion limber)" = "$(sed -n 's/^project(limber VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")" ] ||
  fail "pkg-config has another version"
# shellcheck disable=SC2046
${CXX:-c++} -O1 bar/bar.cpp -o bar-pc $(pkg-config --cflags --libs limber)
./bar-pc | diff - bar.txt || fail "bar, built with pkg-config, prints something else"

# A version that is not there is refused.
mkdir other
printf 'cmake_minimum_required(VERSION 3.22)\nproject(o CXX)\nfind_package(limber 7 REQUIRED)\n' >other/CMakeLists.txt
cmake -S other -B other/build -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >"$scratch/log" 2>&1 && fail "version 7 was found"
exit 0
