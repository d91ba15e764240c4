// Scalar stiffness of a tetrahedral mesh.
#pragma once

#include <limber/fem/elements.hpp>
#include <limber/linalg/scalar_cholesky.hpp>

namespace limber::fem {

// Gradients of the shape functions of an element, as columns [1/m]; of a triangle the fourth is zero.
Eigen::Matrix<double, 3, 4> shape_gradients(std::span<const Vec3> rest, const Tet& tet);

// The sum over the directions of space of the material's stiffness at rest: the elastic energy Laplacian's
// coefficient. For isotropic materials (4 mu + lambda) I with the constants that the model has at small
// strain.
Mat3 laplacian_coefficient(const ElementMaterial& material);

// L_ab = sum over elements of volume grad_a . D grad_b, for all pairs of nodes that share an element.
// Elements are tetrahedra.
ScalarMatrix laplacian(const ElementInput& mesh, std::shared_ptr<const BlockPattern> pattern,
                       std::span<const Mat3> D);

}  // namespace limber::fem
