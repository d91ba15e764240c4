// Contact of a reduced body with obstacles: a bounded number of surface nodes stand for the surface.
#pragma once

#include <limber/contact/contact_energy.hpp>
#include <limber/methods/mixed/reduced_body.hpp>
#include <limber/methods/mixed/sqp.hpp>

namespace limber::mixed {

class SampleContact final : public Potential {
 public:
  // `all`: obstacles and the surface nodes of the body. At most `samples` of the nodes are taken, each as far
  // from the others as can be; each is as many times stiffer as it stands for nodes. The body must live on.
  SampleContact(const ReducedBody& body, const ContactModel& all, Index samples, double damping,
                double slip_speed, double margin);

  bool empty() const { return model_.empty(); }
  Index samples() const { return static_cast<Index>(nodes_.size()); }
  // The stage from the step's start (coordinates u0, time t0) to time t, near `guess`; c and g as in
  // ContactEnergy, c as coordinates.
  void pose(const VecX& u0, double t0, const VecX& guess, double t, const VecX& c, double g);

  double energy(const VecX& u) const override;
  void add(const VecX& u, VecX& g, BlockMatrix& A) const override;
  bool revise(const VecX& u) override;
  // The forces at u, each on its sample, for output.
  std::vector<ContactForce> forces(const VecX& u) const;
  // Samples inside an obstacle at time t.
  Index touching(const VecX& u, double t) const;

 private:
  VecX positions(const VecX& u) const;
  void add_wide(const VecX& x, VecX& g, BlockMatrix& A) const;

  const ReducedBody& body_;
  std::vector<Index> nodes_;
  ContactModel model_;
  MatX rows_;  // Phi of the samples
  VecX rest_;
  mutable BlockMatrix blocks_;  // scratch: one block a sample
  ContactEnergy contact_;
};

// Contact of all surface nodes, in full space.
class NodalContact final : public Potential {
 public:
  NodalContact(const ContactModel& model, const VecX& rest, double damping, double slip_speed, double margin)
      : rest_(rest), contact_(model, damping, slip_speed, margin) {}

  void pose(const VecX& u0, double t0, const VecX& guess, double t, const VecX& c, double g) {
    contact_.pose(u0 + rest_, t0, guess + rest_, t, c + rest_, g);
  }
  double energy(const VecX& u) const override;
  void add(const VecX& u, VecX& g, BlockMatrix& A) const override;
  bool revise(const VecX& u) override;
  std::vector<ContactForce> forces(const VecX& u) const;

 private:
  const VecX& rest_;
  ContactEnergy contact_;
};

}  // namespace limber::mixed
