//! DCQCN's open loop as the authors of [ecndelay16] evaluated it for their figure of phase margins.
//!
//! It is kept to hold our machinery against that figure, which it gives to the tenth of a degree. What
//! follows from the law itself differs by up to 70 degrees, for four reasons, the first two of which the
//! paper states. (1) They stand at p* of the cube-root formula, 20 to 60 % above the exact one. (2) They
//! expand the terms b to e to first order in p, which asks for p B << 1; it is 5 to 1000. (3) Of the
//! raises' r (b + d), the slopes by the current and by the delayed rate are exchanged, and the slope of d
//! and e by the rate is left out. (4) The slope of the target rate by the current rate has a term
//! `R_AI (b + d)` too much. Where the two disagree about stability, integrating the law agrees with ours.

use num_complex::Complex64;

use super::dcqcn::Dcqcn;
use super::law::Loop;

/// DCQCN's published open loop.
pub(super) fn dcqcn(law: Dcqcn) -> Loop {
    let flows = law.link.flows as f64;
    let (capacity, increase) = (law.link.capacity / law.packet, law.increase);
    let (rate, stages, gain) = (capacity / flows, law.stages, law.gain);
    // [ecndelay16]: p* to first order.
    let raises = 1.0 / law.counter + 1.0 / (law.timer * rate);
    let p = (increase * raises * raises / (law.alpha_timer * rate * rate)).cbrt();
    let alpha = law.seen(p, rate);
    let target = law.fixed_target(p);
    // Marks for a packet in the queue, from all flows.
    let slope = flows * law.pmax / (law.kmax - law.kmin) * law.packet / 8.0;

    // The slopes of the current rate by: delayed marks, the delayed and the current rate, the target.
    let gap = target - rate;
    let half = 0.5 + raises / 4.0;
    let by_marks = (-0.5 * rate * rate * alpha - half * rate * gap) * slope;
    let by_past = -0.5 * p * rate * alpha - rate * (raises / 2.0 - half * p);
    let by_rate = -0.5 * p * rate * alpha + gap * (raises / 2.0 - half * p);
    let by_target = rate * (raises / 2.0 - half * p);
    // The slopes of the target rate by: the current rate, the delayed rate, delayed marks.
    let shrink = 1.0 + 2.0 * stages + raises / 2.0;
    let target_by_rate = p * rate + raises * increase;
    let target_by_past = -p * gap + increase * (raises - shrink * p);
    let target_by_marks = -rate * (gap + shrink * increase) * slope;
    // Alpha's, through which delayed marks cut the rate.
    let through_alpha = -0.5 * p * rate * rate * gain * capacity * slope;

    let delay = law.link.delay;
    Box::new(move |s: Complex64| {
        let (of_alpha, of_target) = (flows * s + gain * capacity, s + p * rate);
        let delayed = of_alpha * of_target * (by_marks + by_past * s)
            + of_target * through_alpha
            + of_alpha * by_target * (target_by_past * s + target_by_marks);
        let direct = of_alpha * s * (of_target * (by_rate - s) + by_target * target_by_rate);
        // Theirs is the loop with the sign turned, as the margin asks for.
        delayed / direct * (-s * delay).exp()
    })
}
