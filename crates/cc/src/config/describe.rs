//! How an entry of the list becomes a variant of the configuration, a line of its catalogue, and what
//! reads, prints and builds it.

use std::ops::RangeInclusive;

use weir_units::{Duration, Rate};

use super::CatalogueEntry;
use crate::{Decimal, Gain, MuzhaTable};

/// A controller of the list, which has configurations `C`.
pub(super) struct Description<C: 'static> {
    pub(super) entry: CatalogueEntry,
    /// With every parameter at its default; `None` for the linear controls, which `linear` reads, and for
    /// `careful-resume`, which `resume` reads.
    pub(super) default: Option<fn() -> C>,
    pub(super) parameters: &'static [Parameter<C>],
    /// Where one parameter is not at its default, all are written.
    pub(super) whole: bool,
}

/// A parameter of a controller.
pub(super) struct Parameter<C> {
    /// What stands in front of the value, as in `hystart=`; empty if the value stands alone.
    pub(super) prefix: &'static str,
    /// An example of the value, or its words.
    pub(super) form: &'static str,
    /// What is allowed.
    pub(super) allowed: &'static str,
    /// Sets it from text; `None` if the text is not allowed.
    pub(super) set: fn(&mut C, &str) -> Option<()>,
    /// Its value as text, if it has one.
    pub(super) show: fn(&C) -> Option<String>,
}

/// A value that is no word.
pub(super) trait Shown {
    fn shown(&self) -> Option<String>;
}

/// Declares the controllers, in the order of the catalogue.
macro_rules! controllers {
    ($(
        plain { $(
            $(#[doc = $doc:literal])+
            $variant:ident $({ $(
                $(#[doc = $field_doc:literal])+ $field:ident: $type:ty = $default:expr,
            )+ })? = $name:literal, $summary:literal, [$($example:literal),+],
            takes $($whole:ident)? [
                $( $prefix:literal $place:ident $(. $part:ident)? { $($spec:tt)+ } ),* $(,)?
            ],
            |$start:ident, $mss:ident| $new:expr;
        )+ }
        $( linear {
            $( $linear:literal, $linear_summary:literal, [$($linear_example:literal),+]; )+
        } )?
        $( wrapper {
            $wrapper:literal, $wrapper_summary:literal, [$($wrapper_example:literal),+], $takes:literal;
        } )?
    )+) => {
        /// Which controller, with its parameters.
        ///
        /// ```
        /// use weir_cc::CcConfig;
        /// use weir_units::Bytes;
        ///
        /// let config: CcConfig = "cubic(hystart=off)".parse()?;
        /// assert_eq!(config.to_string(), "cubic(hystart=off)");
        /// let cc = config.build(Bytes(1_200), Bytes(12_000))?;
        /// assert_eq!((cc.name(), cc.cwnd(), cc.phase()), ("cubic", Bytes(12_000), "slow_start"));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum CcConfig {
            $( $(
                $(#[doc = $doc])+
                $variant $({ $( $(#[doc = $field_doc])+ $field: $type, )+ })?,
            )+ )+
            /// A linear control.
            Parametric {
                /// Growth per round trip.
                increase: Increase,
                /// The answer to a loss.
                decrease: Decrease,
            },
            /// A controller with another end of slow start, or another rule for a window that is not used.
            Modified {
                /// The controller.
                controller: Box<CcConfig>,
                /// What differs.
                modifiers: Modifiers,
            },
            /// A controller that may jump to half of the window of an earlier connection.
            CarefulResume {
                /// The controller.
                controller: Box<CcConfig>,
                /// What is known of the path.
                saved: Option<SavedPath>,
            },
            /// What only a kernel's TCP has; no catalogue lists it, and it cannot be built here.
            Kernel(KernelName),
            /// A class in a file of another language; no catalogue lists it, and its host builds it.
            Script(Script),
        }

        /// The controllers of the catalogue.
        pub(super) const LIST: &[Description<CcConfig>] = &[$(
            $( Description {
                entry: CatalogueEntry {
                    name: $name,
                    summary: $summary,
                    parameters: $crate::config::describe::after_comma(concat!(
                        "" $(, ",", $prefix, $crate::config::describe::parameter!(@form $($spec)+))*
                    )),
                    examples: &[$($example),+],
                },
                default: Some(|| CcConfig::$variant $({ $( $field: $default, )+ })?),
                parameters: &[$( Parameter {
                    prefix: $prefix,
                    form: $crate::config::describe::parameter!(@form $($spec)+),
                    allowed: $crate::config::describe::parameter!(@allowed $($spec)+),
                    set: |config, text| {
                        let CcConfig::$variant { $place, .. } = config else { return None };
                        (*$place)$(.$part)? =
                            $crate::config::describe::parameter!(@read text, $($spec)+)?;
                        Some(())
                    },
                    show: |config| {
                        let CcConfig::$variant { $place, .. } = config else { return None };
                        $crate::config::describe::parameter!(@show (*$place)$(.$part)?, $($spec)+)
                    },
                }, )*],
                whole: $crate::config::describe::parameter!(@whole $($whole)?),
            }, )+
            $( $( Description {
                entry: CatalogueEntry {
                    name: $linear,
                    summary: $linear_summary,
                    parameters: "a,b",
                    examples: &[$($linear_example),+],
                },
                default: None,
                parameters: &[],
                whole: true,
            }, )+ )?
            $( Description {
                entry: CatalogueEntry {
                    name: $wrapper,
                    summary: $wrapper_summary,
                    parameters: $takes,
                    examples: &[$($wrapper_example),+],
                },
                default: None,
                parameters: &[],
                whole: true,
            }, )?
        )+];

        impl CcConfig {
            /// Builds the controller for segments of `mss` (at least one byte) and the given initial window
            /// (at least one segment).
            ///
            /// # Errors
            /// For a [`Kernel`](Self::Kernel)'s, and for a [`Script`](Self::Script) without a host.
            pub fn build(
                &self,
                mss: Bytes,
                initial_window: Bytes,
            ) -> Result<Box<dyn CongestionController>, CcBuildError> {
                Ok(match *self {
                    $( $( Self::$variant $({ $($field),+ })? => {
                        let ($start, $mss) = (initial_window, mss);
                        let _ = ($start, $mss);
                        Box::new($new)
                    } )+ )+
                    Self::Parametric { increase, decrease } => {
                        Box::new(Parametric::new(initial_window, increase, decrease))
                    }
                    Self::Modified { ref controller, modifiers } => {
                        let inner = controller.build(mss, initial_window)?;
                        Box::new(Modified::new(inner, initial_window, modifiers))
                    }
                    Self::CarefulResume { ref controller, saved } => {
                        let inner = controller.build(mss, initial_window)?;
                        Box::new(CarefulResume::new(inner, mss, initial_window, saved))
                    }
                    Self::Kernel(name) => return Err(CcBuildError::Kernel(name)),
                    Self::Script(ref script) => return script.build(mss, initial_window),
                })
            }
        }
    };
}

/// The parts of a parameter: words, or an example with what is allowed and what reads it.
macro_rules! parameter {
    (@form $type:ident: $first:ident = $word:literal $(| $value:ident = $other:literal)*) => {
        concat!($word $(, "|", $other)*)
    };
    (@allowed $type:ident: $first:ident = $word:literal $(| $value:ident = $other:literal)*) => {
        concat!($word $(, ", ", $other)*)
    };
    (@read $text:ident, $type:ident: $($value:ident = $word:literal)|+) => {
        match $text {
            $( $word => Some($type::$value), )+
            _ => None,
        }
    };
    (@show $place:expr, $type:ident: $($value:ident = $word:literal)|+) => {
        Some(match $place { $( $type::$value => $word, )+ }.to_owned())
    };
    (@form $form:literal, $allowed:literal, $read:expr) => { $form };
    (@allowed $form:literal, $allowed:literal, $read:expr) => { $allowed };
    (@read $text:ident, $form:literal, $allowed:literal, $read:expr) => {{
        let read: fn(&str) -> Option<_> = $read;
        read($text)
    }};
    (@show $place:expr, $form:literal, $allowed:literal, $read:expr) => {
        $crate::config::describe::Shown::shown(&$place)
    };
    (@whole) => { false };
    (@whole all) => { true };
}

pub(super) use {controllers, parameter};

/// A list without the comma in front of it.
pub(super) const fn after_comma(list: &'static str) -> &'static str {
    if list.is_empty() { list } else { list.split_at(1).1 }
}

/// A decimal number in `range`, in thousandths.
pub(super) fn decimal(text: &str, range: RangeInclusive<u32>) -> Option<Decimal> {
    text.parse().ok().filter(|number: &Decimal| range.contains(&number.thousandths()))
}

/// A time in whole milliseconds.
pub(super) fn millis(text: &str, range: RangeInclusive<u64>) -> Option<Duration> {
    let time = text.parse::<Duration>().ok()?;
    let whole = Duration::from_millis(time.as_millis());
    (time == whole && range.contains(&whole.as_millis())).then_some(whole)
}

/// A time of whole nanoseconds in `range`, in microseconds.
pub(super) fn micros(text: &str, range: RangeInclusive<u64>) -> Option<Duration> {
    let bounds = Duration::from_micros(*range.start())..=Duration::from_micros(*range.end());
    text.parse().ok().filter(|time| bounds.contains(time))
}

/// A rate from 1 Mbit/s to 1 Tbit/s.
pub(super) fn rate(text: &str) -> Option<Rate> {
    text.parse().ok().filter(|rate| (MIN_RATE..=MAX_RATE).contains(rate))
}

/// A whole number in `range`.
pub(super) fn whole(text: &str, range: RangeInclusive<u64>) -> Option<u64> {
    text.parse().ok().filter(|number| range.contains(number))
}

/// A number of segments.
pub(super) fn segments(text: &str, least: u64) -> Option<u64> {
    text.parse().ok().filter(|number| (least..=MAX_WINDOW).contains(number))
}

/// A number of indices.
pub(super) fn levels(text: &str) -> Option<MuzhaTable> {
    text.parse().ok().filter(|levels| (3..=7).contains(levels)).map(MuzhaTable::Levels)
}

impl Shown for u64 {
    fn shown(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Shown for Option<u64> {
    fn shown(&self) -> Option<String> {
        self.map(|number| number.to_string())
    }
}

impl Shown for Decimal {
    fn shown(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Shown for Gain {
    fn shown(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Shown for Duration {
    fn shown(&self) -> Option<String> {
        let whole = *self == Duration::from_millis(self.as_millis());
        Some(if whole { format!("{}ms", self.as_millis()) } else { self.to_string() })
    }
}

impl Shown for Rate {
    fn shown(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Shown for MuzhaTable {
    fn shown(&self) -> Option<String> {
        match self {
            Self::Levels(levels) => Some(levels.to_string()),
            Self::Linear(..) => None,
        }
    }
}

const MIN_RATE: Rate = Rate::from_mbit(1);
const MAX_RATE: Rate = Rate::from_mbit(1_000_000);
const MAX_WINDOW: u64 = 1_000_000;
