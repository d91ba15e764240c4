// Coulomb friction within the program of bounds.hpp. With known limits (Tresca) it is the convex term
// sum_k limit_k |slip_k|: what sticks is a stiff spring, what slides has a force against its slip and the
// stiffness limit/|slip| across it. Limits follow the reactions from one iteration to the next.
//
// Sharp: each contact sticks or slides as the last solution says. Rounded: |slip| becomes
// |slip|^2/(2 speed) + speed/2 below a speed, and the direction of the force is an unknown of its own in the
// linearisation (Chan, Golub and Mulet 1999: Newton's method on sums of norms converges from afar only so).
#pragma once

#include <limber/cloth/bounds.hpp>

#include <algorithm>

namespace limber::cloth {

class DryFriction {
 public:
  // Discs first, then rows. `diagonal`: of each block, the mean. `start`: active coordinates, or empty.
  // `pressed`: whether something presses on each disc at the start.
  DryFriction(const BoundProblem& problem, const std::vector<double>& diagonal,
              const std::vector<std::int8_t>& start, const std::vector<std::uint8_t>& pressed);

  std::size_t size() const { return contacts_.size(); }

  // Limit of contact k by the last solution: mu times what presses [N s]; negative: nothing presses.
  void set_limit(std::size_t k, double limit) { contacts_[k].target = limit; }

  void keep_limit(std::size_t k) { contacts_[k].target = std::max(0.0, contacts_[k].target); }  // not known

  void add_stiffness(BlockMatrix& A) const;
  void add_forces(VecX& rhs) const;

  // Forces at y, how many of them are not Coulomb's, and stiffness and forces for the next solution.
  // `share`: of the way from the y before to the solution, less than 1 if y is not the solution itself.
  struct Look {
    std::size_t unsettled = 0;
    bool stiffness = false;  // it has changed: factor anew
  };
  Look look(const VecX& y, double share);
  // From now on rounded within this speed [m/s], and settled when forces are off by this share of limits.
  void round(double speed, double tolerance, const VecX& y);
  // From now on all forces stay as they are at y.
  void freeze(const VecX& y);

  // Derivative of the rounded term at y + s d along d.
  double slope(const VecX& y, const VecX& d, double s) const;

  // Forces of each disc, as the last solution had them.
  std::vector<Vec2> disc_forces() const;
  bool sticks(std::size_t k) const { return contacts_[k].mode == Mode::kStick; }

 private:
  enum class Mode : std::uint8_t { kOff, kStick, kSlip };
  struct Contact {
    Mode mode = Mode::kOff;
    double diagonal = 0;            // inertia of what slides
    double limit = 0, target = -1;  // what it is and what it should be [N s]
    double change = 0, pace = 1;    // of the limit
    double stiffness = 0;           // of the spring that sticks, or across the slip
    Vec3 direction = Vec3::Zero();  // of the slip, unit; 0 where it sticks
    double speed = 0;               // of the slip
    Vec3 against = Vec3::Zero();    // minus the force over the limit, at most unit
    Vec3 push = Vec3::Zero();       // the part of the force that does not depend on y
    Vec3 force = Vec3::Zero();      // with the last solution
  };
  struct Judged {
    bool settled = true, stiffness = false;
  };

  Vec3 slip(std::size_t k, const VecX& y, bool relative = true) const;
  static Mat3 stiffness_of(const Contact& c);
  static void stick(Contact& c, double stiffness);
  static void slide(Contact& c, const Vec3& direction, double speed);
  static void relax(Contact& c);
  Judged judge(Contact& c, const Vec3& slip, double share) const;
  Judged judge_sharp(Contact& c, const Vec3& slip) const;
  Judged judge_rounded(Contact& c, const Vec3& slip, double share) const;
  void linearise_rounded(Contact& c, const Vec3& slip) const;

  const BoundProblem& problem_;
  std::vector<Contact> contacts_;
  double speed_ = 0;  // 0: sharp
  double tolerance_ = 2e-3;
  double scale_ = 0;  // mean limit
  bool frozen_ = false;
};

}  // namespace limber::cloth
