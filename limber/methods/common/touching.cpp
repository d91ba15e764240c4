#include <limber/methods/common/touching.hpp>

#include <limber/contact/friction.hpp>
#include <limber/methods/common/system.hpp>

namespace limber {

void begin_contacts(const ContactModel& model, std::span<const Anchor> anchors, const State& state,
                    const StepInput& in, ContactStep& contact, PhaseClock& clock) {
  auto phase = clock.phase("contact");
  VecX v = state.v;
  restore_fixed(in, v);
  contact.begin(model, anchors, state.x, v, in.h * in.gravity, in.h, in.t);
}

bool filter_friction(const Model& model, const ContactStep& contact, const StepInput& in, State& state) {
  if (model.contact.rule != FrictionRule::kFilter) return false;
  bool any = false;
  for (const ContactLaw& law : contact.laws()) {
    const Index i = law.contact.node;
    const double normal = law.active ? law.normal_force(node(state.x, i)) : 0.0;
    if (normal == 0) continue;
    any = true;
    const Vec3 v = node(state.v, i);
    node(state.v, i) = filter_friction(v, law.contact.n, law.contact.velocity,
                                       in.h * normal / model.mass[3 * i], law.contact.friction);
  }
  if (any) restore_fixed(in, state.v);
  return any;
}

}  // namespace limber
