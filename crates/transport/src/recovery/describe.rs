//! How an entry of the list becomes a variant of the configuration, a line of its catalogue, and what
//! reads, prints and builds it.

use super::LossRecovery;
use crate::catalogue::CatalogueEntry;
use crate::profile::DelayedAck;
use crate::reassembly::OutOfOrder;

/// A recovery scheme of the list, which has configurations `C`.
pub(crate) struct Scheme<C: 'static> {
    pub(super) entry: CatalogueEntry,
    pub(crate) receiver: ReceiverDefaults,
    pub(super) sack: SackUse,
    /// Makes it from what stands in parentheses, if they are there.
    pub(super) read: fn(Option<&str>) -> Result<C, Mistake>,
}

/// What the receiver of a scheme does unless configured otherwise.
pub(crate) struct ReceiverDefaults {
    pub(crate) delayed_ack: DelayedAck,
    pub(crate) out_of_order: OutOfOrder,
}

/// What selective acknowledgements are to a scheme.
pub(super) enum SackUse {
    /// It does not read them.
    Ignored,
    /// It reads them where the peer sends them.
    Read,
    /// It cannot do without; which scheme takes its place where the peer sends none (RFC 6582 §1).
    Needed { otherwise: fn() -> Box<dyn LossRecovery> },
}

/// What stands in parentheses after the name of a scheme.
pub(super) trait Parameters: Default {
    /// As catalogues print it; empty if there is nothing.
    const FORM: &'static str;

    /// Reads what stands in parentheses.
    fn read(text: &str) -> Result<Self, Mistake>;

    /// What to write in parentheses: what is not at its default.
    fn shown(&self) -> String;
}

/// What is wrong with what stands in parentheses.
pub(super) enum Mistake {
    /// The scheme does not take it.
    Refused,
    /// A value out of range or unreadable.
    Value { parameter: &'static str, value: String, allowed: &'static str },
}

/// Declares the schemes, in the order of the catalogue.
macro_rules! schemes {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident
            $({ $(#[doc = $field_doc:literal])+ $field:ident: $type:ty, })?
            $(($config:ident: $config_type:ty))?
            = $name:literal, $summary:literal, [$($example:literal),+], $receiver:expr, $sack:expr,
            $new:expr;
    )+) => {
        /// A recovery scheme. The sliding-window schemes take their window in segments, `go-back-n(30)`,
        /// without which the controller and the receiver alone bound the sender.
        ///
        /// ```
        /// use weir_transport::RecoveryConfig;
        ///
        /// for entry in RecoveryConfig::CATALOGUE {
        ///     for example in entry.examples {
        ///         assert_eq!(example.parse::<RecoveryConfig>()?.to_string(), *example);
        ///     }
        /// }
        /// # Ok::<(), weir_transport::StackError>(())
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum RecoveryConfig {
            $(
                $(#[doc = $doc])+
                $variant $({ $(#[doc = $field_doc])+ $field: $type })? $(($config_type))?,
            )+
        }

        #[expect(non_upper_case_globals, reason = "each has the name of its variant")]
        impl Scheme<RecoveryConfig> {
            $(
                const $variant: Self = Self {
                    entry: CatalogueEntry {
                        name: $name,
                        summary: $summary,
                        parameters: <variant!(@type $($type)? $($config_type)?) as Parameters>::FORM,
                        examples: &[$($example),+],
                    },
                    receiver: $receiver,
                    sack: $sack,
                    read: |text| {
                        let read = text.map_or(Ok(Default::default()), Parameters::read);
                        read.map(variant!(@make $variant $({ $field })? $(($config))?))
                    },
                };
            )+
        }

        /// The schemes of the catalogue.
        pub(super) const LIST: &[Scheme<RecoveryConfig>] = &[$( Scheme::$variant ),+];

        impl RecoveryConfig {
            /// Its entry of the list.
            pub(crate) fn scheme(self) -> &'static Scheme<Self> {
                match self {
                    $( Self::$variant { .. } => &Scheme::$variant, )+
                }
            }

            /// What stands in parentheses after its name.
            pub(super) fn shown_parameters(self) -> String {
                match self {
                    $( Self::$variant $({ $field })? $(($config))? => {
                        Parameters::shown(&variant!(@value $($field)? $($config)?))
                    } )+
                }
            }

            pub(crate) fn build(self) -> Box<dyn LossRecovery> {
                match self {
                    $( Self::$variant $({ $field })? $(($config))? => Box::new($new), )+
                }
            }
        }
    };
}

/// The parts of a variant: the type of its field, what makes it from that, the field's value.
macro_rules! variant {
    (@type) => {
        ()
    };
    (@type $type:ty) => {
        $type
    };
    (@make $variant:ident) => {
        |()| RecoveryConfig::$variant
    };
    (@make $variant:ident { $field:ident }) => {
        |$field| RecoveryConfig::$variant { $field }
    };
    (@make $variant:ident ($config:ident)) => {
        RecoveryConfig::$variant
    };
    (@value) => {
        ()
    };
    (@value $field:ident) => {
        $field
    };
}

/// Implements [`Parameters`] of fields whose values are words; the first is the default.
macro_rules! word_parameters {
    ($config:ident { $(
        $field:ident: $type:ident { $value:ident = $word:literal $(| $other:ident = $other_word:literal)* }
    ),+ $(,)? }) => {
        impl $crate::recovery::describe::Parameters for $config {
            const FORM: &'static str = $crate::recovery::describe::after_comma(concat!($(
                ",", stringify!($field), "=", $word $(, "|", $other_word)*
            ),+));

            fn read(text: &str) -> Result<Self, $crate::recovery::describe::Mistake> {
                use $crate::recovery::describe::Mistake;
                let mut config = Self::default();
                for part in text.split(',') {
                    let (key, word) = part.split_once('=').ok_or(Mistake::Refused)?;
                    match (key.trim(), word.trim()) {
                        $(
                            (stringify!($field), $word) => config.$field = $type::$value,
                            $( (stringify!($field), $other_word) => config.$field = $type::$other, )*
                            (stringify!($field), value) => return Err(Mistake::Value {
                                parameter: stringify!($field),
                                value: value.to_owned(),
                                allowed: concat!($word $(, ", ", $other_word)*),
                            }),
                        )+
                        _ => return Err(Mistake::Refused),
                    }
                }
                Ok(config)
            }

            fn shown(&self) -> String {
                let mut parts = Vec::new();
                $(
                    match self.$field {
                        $type::$value => {}
                        $( $type::$other => parts.push(concat!(stringify!($field), "=", $other_word)), )*
                    }
                )+
                parts.join(",")
            }
        }
    };
}

pub(super) use {schemes, variant, word_parameters};

/// A list without the comma in front of it.
pub(super) const fn after_comma(list: &'static str) -> &'static str {
    list.split_at(1).1
}

impl Parameters for () {
    const FORM: &'static str = "";

    fn read(_: &str) -> Result<Self, Mistake> {
        Err(Mistake::Refused)
    }

    fn shown(&self) -> String {
        String::new()
    }
}

/// A window in segments.
impl Parameters for Option<u32> {
    const FORM: &'static str = "window";

    fn read(text: &str) -> Result<Self, Mistake> {
        let window = text.trim().parse().ok().filter(|window| *window >= 1);
        window.map(Some).ok_or_else(|| Mistake::Value {
            parameter: Self::FORM,
            value: text.trim().to_owned(),
            allowed: "a whole number of segments, at least 1",
        })
    }

    fn shown(&self) -> String {
        self.map(|window| window.to_string()).unwrap_or_default()
    }
}
