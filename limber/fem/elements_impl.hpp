// How the elements are laid out for assembly. Inside fem/ only.
//
// Elements are sorted along a space-filling curve and cut into chunks of a few hundred to two thousand. A
// chunk sums its elements' forces and blocks in a small array of its own that stays in the cache, in the
// order of its elements. Nodes and blocks that belong to one chunk alone go from there to the result; those
// that several chunks share go to a slot per chunk, and the slots are summed in the order of the chunks.
// Nothing of this depends on the number of threads, so neither do the bits of the result.
#pragma once

#include <limber/fem/element_kernel.hpp>
#include <limber/fem/elements.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace limber::fem {

inline constexpr int kBatch = 8;  // elements of a batch; a multiple of every instruction set's lanes

// One number per element of a batch.
struct alignas(64) PerElement {
  double a[kBatch];
  double& operator[](int i) { return a[i]; }
  double operator[](int i) const { return a[i]; }
};

// Up to kBatch elements of one kind; the rest repeat the last element with volume 0. The nodes of an element
// ascend, so that its blocks below the diagonal are stored blocks of K as they are. The layout is the same
// for every instruction set: kernels take as many elements at a time as they have lanes.
struct Batch {
  MaterialModel model;
  FibreModel fibre;
  ElementKind kind;
  std::uint8_t count;
  Index fibres;                             // entry of Elements::fibres, -1: none
  const material::InvariantEnergy* energy;  // of MaterialModel::kInvariants; Elements::material owns it
  PerElement B[9];                          // column-major [1/m]
  PerElement volume, mu, lambda;
  Index node[4][kBatch];  // a triangle repeats its first node
  Index element[kBatch];  // number in the input
  // Where nodes and blocks are in the chunk's own arrays; what a triangle does not have goes to the last
  // entry.
  std::uint16_t local_node[kBatch][4];
  std::uint16_t local_block[kBatch][kElementBlocks];
};

struct FibreBatch {
  PerElement k;
  PerElement direction[3];
  Index channel[kBatch];  // -1: no activation
};

struct Chunk {
  Index batch_begin, batch_end;
  Index node_begin, node_end;    // range of Elements::node_target
  Index block_begin, block_end;  // range of Elements::block_target
};

// Items (nodes or blocks) that several chunks touch: item i has the slots [begin[i], begin[i+1]).
struct Shared {
  std::vector<Index> item;
  std::vector<Index> begin;
  Index slots() const { return begin.empty() ? 0 : begin.back(); }
};

class Elements {
 public:
  Index nodes = 0;
  std::vector<Tet> element;  // as in the input
  std::vector<ElementKind> kind;
  std::vector<ElementMaterial> material;
  std::vector<double> volume;
  VecX mass;
  std::shared_ptr<const BlockPattern> pattern;
  Index channels = 0;  // activation channels that are used: 0 .. channels - 1

  std::vector<Batch> batch;
  std::vector<FibreBatch> fibres;
  std::vector<Chunk> chunk;
  // For every chunk's own node or block: t >= 0 is the node or block of the result, t < 0 the slot -1 - t.
  std::vector<Index> node_target, block_target;
  std::vector<Index> chunk_node, chunk_block;  // those nodes and blocks themselves, ascending in a chunk
  Shared shared_nodes, shared_blocks;
  std::vector<Index> idle_nodes, idle_blocks;  // touched by no element
  Index max_chunk_nodes = 0, max_chunk_blocks = 0;
};

// Turns chunk_node and chunk_block into targets, slots and idle items, once all chunks are there.
void set_targets(Elements& elements);

// Throw Error when the arguments do not fit the elements.
void check_positions(const Elements& elements, const VecX& x);
void check_activation(const Elements& elements, std::span<const double> activation);

}  // namespace limber::fem
