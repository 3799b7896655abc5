//! How strong a signal arrives, and when.
//!
//! ```text
//! Friis            Pr = Pt lambda^2 / (4 pi d)^2                  below the crossover distance
//! two-ray ground   Pr = Pt ht^2 hr^2 / d^4                        beyond it
//! crossover        4 pi ht hr / lambda = 86.1 m
//! ```
//!
//! Source: ns-2's 914 MHz WaveLAN: Pt = 0.28183815 W, antennas at 1.5 m with gain 1, received from
//! 3.652e-10 W (250 m), sensed from 1.559e-11 W (550 m). The range model replaces the two thresholds by
//! two radii and keeps the fourth power of the distance, which capture compares.
//!
//! Powers are whole attowatts (1e-18 W): a signal at the edge of being sensed has eight digits.

use weir_units::Duration;

use weir_net::ConfigError;

/// How signals spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Propagation {
    /// ns-2's two-ray ground model with its WaveLAN radio: received up to 250 m, sensed up to 550 m.
    #[default]
    TwoRayGround,
    /// Received and sensed up to given distances.
    Range {
        /// Up to where a frame can be read.
        receive_mm: u64,
        /// Up to where it is sensed.
        sense_mm: u64,
    },
}

/// How a signal arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    /// In attowatts.
    pub(super) power: u64,
    /// Whether it can be read or merely sensed.
    pub(super) readable: bool,
    pub(super) delay: Duration,
}

impl Propagation {
    /// What arrives over this distance; `None` if it is not even sensed.
    pub(super) fn arrival(self, distance_mm: u64) -> Option<Arrival> {
        let (power, sensed, readable) = match self {
            Self::TwoRayGround => {
                let power = two_ray(distance_mm);
                (power, power >= SENSE_THRESHOLD, power >= RECEIVE_THRESHOLD)
            }
            Self::Range { receive_mm, sense_mm } => {
                (fourth_power(distance_mm), distance_mm <= sense_mm, distance_mm <= receive_mm)
            }
        };
        sensed.then(|| Arrival { power, readable, delay: delay(distance_mm) })
    }

    /// Up to where a frame can be read, and up to where it is sensed, in metres.
    pub fn range_m(self) -> (f64, f64) {
        match self {
            Self::TwoRayGround => (250.0, 550.0),
            Self::Range { receive_mm, sense_mm } => {
                (receive_mm as f64 / 1e3, sense_mm as f64 / 1e3)
            }
        }
    }

    pub(super) fn validate(self) -> Result<(), ConfigError> {
        const ORDER: &str = "it must be at least the distance of reception, and 2km at most";
        match self {
            Self::Range { receive_mm, sense_mm }
                if sense_mm < receive_mm || sense_mm > FARTHEST =>
            {
                Err(ConfigError::new("sense_range", format!("{sense_mm} mm"), ORDER))
            }
            _ => Ok(()),
        }
    }
}

fn delay(distance_mm: u64) -> Duration {
    let nanos = u128::from(distance_mm) * 1_000_000_000 / LIGHT_MM_PER_S;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

fn two_ray(distance_mm: u64) -> u64 {
    let metres = distance_mm as f64 / 1_000.0;
    let crossover = 4.0 * PI * HEIGHT * HEIGHT / WAVELENGTH;
    if metres >= crossover {
        return fourth_power(distance_mm);
    }
    let spread = WAVELENGTH / (4.0 * PI * metres.max(NEAREST));
    attowatts(TRANSMIT_POWER * spread * spread)
}

fn fourth_power(distance_mm: u64) -> u64 {
    let metres = (distance_mm as f64 / 1_000.0).max(NEAREST);
    let gain = HEIGHT * HEIGHT / (metres * metres);
    attowatts(TRANSMIT_POWER * gain * gain)
}

/// A cast saturates.
fn attowatts(watts: f64) -> u64 {
    (watts * 1e18) as u64
}

const PI: f64 = std::f64::consts::PI;
const TRANSMIT_POWER: f64 = 0.281_838_15;
const HEIGHT: f64 = 1.5;
/// ns-2 computes with the speed of light rounded to 3e8 m/s here.
const WAVELENGTH: f64 = 3e8 / 914e6;
/// In metres: nearer ones count as this near, so that powers stay finite.
const NEAREST: f64 = 1.0;
const RECEIVE_THRESHOLD: u64 = 365_200_000;
const SENSE_THRESHOLD: u64 = 15_590_000;
const LIGHT_MM_PER_S: u128 = 299_792_458_000;
/// In millimetres: a signal takes less than SIFS there, which the medium relies on.
const FARTHEST: u64 = 2_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// The powers that the model's formulas give, to three digits.
    #[test]
    fn two_ray_powers_are_those_of_the_formula() {
        let expected = [(100, 1.43e-8), (200, 8.92e-10), (250, 3.65e-10), (400, 5.57e-11)];
        for (metres, watts) in expected.into_iter().chain([(500, 2.28e-11), (550, 1.56e-11)]) {
            let found = two_ray(metres * 1_000) as f64 / 1e18;
            assert!((found / watts - 1.0).abs() < 0.005, "{metres} m: {found} W");
        }
    }

    #[test]
    fn frames_are_read_up_to_250_m_and_sensed_up_to_550_m() {
        let arrival = |mm| Propagation::TwoRayGround.arrival(mm);
        assert!(arrival(250_000).is_some_and(|at| at.readable));
        assert!(arrival(250_100).is_some_and(|at| !at.readable));
        assert!(arrival(550_000).is_some());
        assert_eq!(arrival(550_200), None);
    }

    #[test]
    fn friis_and_two_ray_meet_at_the_crossover() {
        let below = two_ray(86_100) as f64;
        let beyond = two_ray(86_200) as f64;
        assert!((below / beyond - 1.0).abs() < 0.01, "{below} {beyond}");
        assert_eq!(two_ray(0), two_ray(1_000), "no node is nearer than a metre");
    }

    #[test]
    fn ranges_are_sharp_and_signals_as_fast_as_light() {
        let model = Propagation::Range { receive_mm: 100, sense_mm: 299_792 };
        assert!(model.arrival(100).is_some_and(|at| at.readable));
        let edge = model.arrival(299_792).unwrap();
        assert!(!edge.readable);
        assert_eq!(edge.delay, Duration::from_nanos(999));
        assert_eq!(model.arrival(299_793), None);
        assert!(Propagation::Range { receive_mm: 2, sense_mm: 1 }.validate().is_err());
    }
}
