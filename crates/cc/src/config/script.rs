//! Controllers that this crate does not have: a class in a file of another language, written
//! `FILE.py:CLASS` or `FILE.py:CLASS(attribute=value,…)`.
//!
//! Here such a controller is a name. The host of the language reads the file and gives the name a
//! [`BuildScripted`]; a name without one cannot be built, as a kernel's own controller cannot.

use std::fmt;
use std::sync::Arc;

use weir_units::Bytes;

use super::{CcBuildError, CcConfigError};
use crate::CongestionController;

/// Builds the controllers of a class, one for each connection.
pub trait BuildScripted: fmt::Debug + Send + Sync {
    /// A controller for segments of `mss` with the given initial window. It cannot fail: what goes wrong
    /// is kept by the host, which ends the run.
    fn build(&self, mss: Bytes, initial_window: Bytes) -> Box<dyn CongestionController>;
}

/// A class in a file, with attributes to set. Two are equal if they are written alike.
///
/// ```
/// use std::sync::Arc;
/// use weir_cc::{BuildScripted, CcConfig, CongestionController, Reno, Script};
/// use weir_units::Bytes;
///
/// #[derive(Debug)]
/// struct Interpreter;
///
/// impl BuildScripted for Interpreter {
///     fn build(&self, _mss: Bytes, initial_window: Bytes) -> Box<dyn CongestionController> {
///         Box::new(Reno::new(initial_window))
///     }
/// }
///
/// let mut script = Script::parse("mine.py:Mine(beta=0.7)")?;
/// assert_eq!((script.file(), script.class()), ("mine.py", "Mine"));
/// script.set_host(Arc::new(Interpreter));
/// let cc = CcConfig::Script(script).build(Bytes(1_200), Bytes(12_000)).unwrap();
/// assert_eq!(cc.cwnd(), Bytes(12_000));
/// # Ok::<(), weir_cc::CcConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Script {
    file: String,
    class: String,
    parameters: Vec<(String, String)>,
    host: Option<Arc<dyn BuildScripted>>,
}

impl Script {
    /// Whether `text` means a class in a file.
    pub fn is_meant(text: &str) -> bool {
        let name = text.split('(').next().unwrap_or_default().trim();
        name.contains(".py:") || name.ends_with(".py")
    }

    /// Reads `FILE.py:CLASS` or `FILE.py:CLASS(attribute=value,…)`.
    ///
    /// # Errors
    /// If the class or an attribute has no name, or a parenthesis is misplaced.
    pub fn parse(text: &str) -> Result<Self, CcConfigError> {
        Self::split(text.trim())
            .ok_or_else(|| CcConfigError::Script { text: text.trim().to_owned() })
    }

    fn split(text: &str) -> Option<Self> {
        let (name, parameters) = match text.split_once('(') {
            None => (text, ""),
            Some((name, rest)) => (name, rest.strip_suffix(')').filter(|rest| !rest.is_empty())?),
        };
        let (file, class) = name.trim().rsplit_once(':')?;
        let stem = file.strip_suffix(".py")?;
        let named = !stem.is_empty() && !stem.ends_with('/') && is_identifier(class);
        if !named || text.contains(['\n', '\0']) || parameters.contains(['(', ')']) {
            return None;
        }
        let given = parameters.split(',').filter(|_| !parameters.is_empty()).map(|part| {
            let (key, value) = part.split_once('=').map(|(k, v)| (k.trim(), v.trim()))?;
            (is_identifier(key) && !value.is_empty()).then(|| (key.to_owned(), value.to_owned()))
        });
        let parameters = given.collect::<Option<_>>()?;
        Some(Self { file: file.to_owned(), class: class.to_owned(), parameters, host: None })
    }

    /// The file as it was written.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The class in it.
    pub fn class(&self) -> &str {
        &self.class
    }

    /// The attributes to set, with their values as they were written.
    pub fn parameters(&self) -> &[(String, String)] {
        &self.parameters
    }

    /// Lets `host` build it.
    pub fn set_host(&mut self, host: Arc<dyn BuildScripted>) {
        self.host = Some(host);
    }

    /// Whether a host can build it.
    pub fn is_hosted(&self) -> bool {
        self.host.is_some()
    }

    /// Builds a controller, if it has a host.
    pub(crate) fn build(
        &self,
        mss: Bytes,
        initial_window: Bytes,
    ) -> Result<Box<dyn CongestionController>, CcBuildError> {
        let host = self.host.as_ref().ok_or_else(|| CcBuildError::NoHost(self.to_string()))?;
        Ok(host.build(mss, initial_window))
    }
}

impl PartialEq for Script {
    fn eq(&self, other: &Self) -> bool {
        (&self.file, &self.class, &self.parameters)
            == (&other.file, &other.class, &other.parameters)
    }
}

impl Eq for Script {}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.class)?;
        if self.parameters.is_empty() {
            return Ok(());
        }
        let given: Vec<_> =
            self.parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
        write!(f, "({})", given.join(","))
    }
}

fn is_identifier(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !text.is_empty() && text.bytes().all(plain) && !text.as_bytes()[0].is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CcConfig, Reno};

    #[derive(Debug)]
    struct Renos;

    impl BuildScripted for Renos {
        fn build(&self, _mss: Bytes, initial_window: Bytes) -> Box<dyn CongestionController> {
            Box::new(Reno::new(initial_window))
        }
    }

    #[test]
    fn a_class_in_a_file_reads_back_as_it_prints() {
        for text in [
            "mine.py:Mine",
            "../some dir/mine.py:Mine",
            "/tmp/a:b.py:_Mine2",
            "mine.py:Mine(beta=0.7)",
            "mine.py:Mine(beta=0.7,name=a b)",
        ] {
            let config = CcConfig::parse(text).unwrap();
            assert_eq!(config.to_string(), text);
            assert_eq!(CcConfig::parse(&config.to_string()), Ok(config));
        }
        let spaced = Script::parse(" mine.py:Mine ( beta = 0.7 , k=2) ").unwrap();
        assert_eq!(spaced.to_string(), "mine.py:Mine(beta=0.7,k=2)");
        assert_eq!((spaced.file(), spaced.class()), ("mine.py", "Mine"));
    }

    #[test]
    fn what_is_no_class_in_a_file_is_refused_with_the_way_to_write_it() {
        for text in [
            "mine.py",
            "mine.py:",
            ".py:Mine",
            "dir/.py:Mine",
            "mine.py:Mine()",
            "mine.py:Mine(beta)",
            "mine.py:Mine(=1)",
            "mine.py:Mine(beta=)",
            "mine.py:Mine(beta=f(2))",
            "mine.py:Mine(beta=1",
            "mine.py:2Mine",
            "mine.py:A.B",
            "mi\nne.py:Mine",
        ] {
            let error = CcConfig::parse(text).unwrap_err().to_string();
            assert!(error.contains("as in mine.py:Mine"), "{error}");
        }
    }

    #[test]
    fn its_host_builds_it() {
        let mut script = Script::parse("mine.py:Mine").unwrap();
        assert!(!script.is_hosted());
        let unhosted = CcConfig::Script(script.clone()).build(Bytes(1_448), Bytes(14_480));
        assert_eq!(unhosted.unwrap_err(), CcBuildError::NoHost("mine.py:Mine".into()));
        script.set_host(Arc::new(Renos));
        let built = CcConfig::Script(script).build(Bytes(1_448), Bytes(14_480)).unwrap();
        assert_eq!(built.cwnd(), Bytes(14_480));
    }
}
