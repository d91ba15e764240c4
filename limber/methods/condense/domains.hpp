// Bases from the displacements of training poses: by singular vectors of the whole body, or of the flesh
// around each bone (paper, section 4.1).
//
// A node belongs to the domains of bones whose skinning weights are not far below its greatest one, with
// shares phi that sum to one: u = sum of phi_d u_d over its domains, so that the body has no cracks whatever
// the coordinates are, and domains that agree give what they agree on. Where domains i and j overlap, springs
// between their displacements (Eqs. 14 to 20) hold them together,
//
//   E = 1/2 sum over nodes of k phi_i phi_j |u_i - u_j|^2,   k = kappa E V / l^2,
//
// whose matrix is constant, since skinning turns both displacements of a node by the same R. V: of the node;
// l: the size of the overlap. The paper has an interface of single nodes and takes the springs for all that
// holds domains together; here elements that both domains move do that too.
#pragma once

#include <limber/methods/condense/subspace.hpp>

namespace limber::condense {

// Fills basis, mean_mass, mass, coupling, q, spread and domain_of_element. `displacements`: one column for
// each pose, in the skinned frame.
void make_basis(const Model& model, const Skeleton& skeleton, const BoneSkinning& skinning,
                const MatX& displacements, const CondenseOptions& options, Subspace& out);

}  // namespace limber::condense
