#include <limber/sim/contact_state.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace limber {

std::vector<Anchor> anchors_of(const State& state) {
  std::vector<Anchor> anchors(state.contact_pairs.size() / 2);
  for (std::size_t k = 0; k < anchors.size(); ++k)
    anchors[k] = {static_cast<Index>(state.contact_pairs[2 * k]),
                  static_cast<Index>(state.contact_pairs[2 * k + 1]),
                  Eigen::Map<const Vec3>(state.contact_anchors.data() + 3 * k)};
  return anchors;
}

void store_anchors(const std::vector<Anchor>& anchors, State& state) {
  state.contact_pairs.clear();
  state.contact_anchors.clear();
  for (const Anchor& a : anchors) {
    state.contact_pairs.insert(state.contact_pairs.end(), {a.node, a.obstacle});
    state.contact_anchors.insert(state.contact_anchors.end(), a.point.data(), a.point.data() + 3);
  }
}

double contact_energy(const Model& model, const State& state) {
  return model.contact.empty() ? 0.0 : contact_energy(model.contact, anchors_of(state), state.x, state.t);
}

std::vector<double> contact_pressure(const Model& model, const State& state) {
  std::vector<double> force(static_cast<std::size_t>(model.nodes()), 0.0);
  for (const Contact& c : touching(model.contact, state.x, state.t)) force[c.node] += c.stiffness * c.depth;
  return force;
}

void finish_contacts(const ContactStep& contact, double h, State& state, StepReport& report) {
  if (contact.empty()) return;
  store_anchors(contact.finish(state.x), state);
  double deepest = 0;
  for (const Contact& c : contact.inside(state.x, state.t + h)) {
    ++report.contacts;
    deepest = std::max(deepest, c.depth);
  }
  report.extra["contact_depth"] = deepest;  // [m]
  if (!contact.settled()) ++report.fallbacks["contacts_unsettled"];
  for (const Contact& c : contact.tunnelled(state.x))
    report.warnings.push_back(fmt::format(
        "node {} went through obstacle \"{}\" in this step: it moved {:.3g} m; use a smaller time step",
        c.node, contact.model().obstacles[c.obstacle].name, contact.travel(c.node, state.x)));
}

}  // namespace limber
