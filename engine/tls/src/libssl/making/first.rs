//! Cost of a short-lived client: a fresh process that loads a library, makes a context, and connects once.
//!
//! The server is in the process that starts it, and uses the same library; its cost is in no account. The
//! whole fresh process is counted: the kernel reports its usage when it has ended.

use std::ffi::c_int;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::super::api::{Api, Owned, c_name};
use super::super::context::{Context, Method};
use super::super::contexts::{Bundle, CHOICES, Making};
use super::super::library;
use crate::contract::{Proof, Task};
use crate::failure::Failure;
use crate::provider::{Prepared, Primitive};
use crate::spec::{Asked, Identity};

/// Name of the operation.
pub use tollbar_primitives::op::FIRST;

/// Last step of a fresh process, which reports it.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
enum Step {
    Nothing,
    Library,
    Context,
    Handshake,
}

const STEPS: &[(&str, Step)] =
    &[("handshake", Step::Handshake), ("library", Step::Library), ("context", Step::Context)];

/// Time without bytes after which a client counts as stuck.
const LIMIT: Duration = Duration::from_secs(60);

/// Word for a missing file.
const NONE: &str = "-";

pub fn prepare(api: &'static Api, task: &Task) -> Prepared {
    let until = task.one_of("until", STEPS)?;
    let is_nothing = task.choice == "none";
    let (step, trusts) = if is_nothing {
        (Step::Nothing, false)
    } else {
        (until, *crate::families::row("libssl", task, CHOICES)?)
    };
    let pem = task.text("private_key_pem").unwrap_or_default();
    let server = if step == Step::Handshake { Some(Served::of(api, pem)?) } else { None };
    Ok(Box::new(First {
        step,
        libcrypto: task.provider.path.clone(),
        bundle: if trusts && step >= Step::Context { Some(Bundle::of_system()?) } else { None },
        server,
        used_ns: 0,
    }))
}

/// Server of a handshake, and the certificate of the authority by which it is verified.
struct Served {
    context: Context,
    authority_pem: String,
}

impl Served {
    /// Reads a PEM text of the server's key, its certificate, and that of the authority that signed it.
    fn of(api: &'static Api, pem: &str) -> Result<Served, Failure> {
        const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
        let parts: Vec<&str> = pem.split(BEGIN).collect();
        let [key, leaf, authority] = parts[..] else {
            return Err(Failure::Failed(
                "a server's key and two certificates are missing from the task".to_owned(),
            ));
        };
        let asked = Asked { protocol: None, key_exchange: None, cipher: None, signer: None };
        let mut context = Context::new(api, Method::Server, asked, false)?;
        context.present(&Identity { chain_pem: format!("{BEGIN}{leaf}"), key_pem: key.to_owned() })?;
        Ok(Served { context, authority_pem: format!("{BEGIN}{authority}") })
    }

    /// Answers one client. Fails if the client is silent for longer than the limit.
    fn answer(&self, socket: &OwnedFd, limit: Duration) -> Result<(), Failure> {
        let api = self.context.api;
        api.clear_errors();
        for wait in [Timeout::Recv, Timeout::Send] {
            let set = set_socket_timeout(socket, wait, Some(limit));
            set.map_err(|error| Failure::Failed(format!("a limit for a client: {error}")))?;
        }
        // SAFETY: the context is alive, the caller owns the connection, and the socket outlives it.
        unsafe {
            let connection = api.crypto.own((api.SSL_new)(self.context.raw()), api.SSL_free, "SSL_new")?;
            (api.SSL_set_accept_state)(connection.raw());
            api.crypto.ensure((api.SSL_set_fd)(connection.raw(), socket.as_raw_fd()) == 1, "SSL_set_fd")?;
            api.crypto
                .ensure((api.SSL_do_handshake)(connection.raw()) == 1, "the server's side of a handshake")
        }
    }
}

/// Operation that starts a fresh process each time.
struct First {
    step: Step,
    libcrypto: Option<String>,
    bundle: Option<Bundle>,
    server: Option<Served>,
    /// CPU time of all processes, including their start by `exec`.
    used_ns: u64,
}

impl First {
    /// Runs a process up to its step. Returns its output and its CPU time.
    fn start(&self, libcrypto: Option<&str>, authority: Option<&str>) -> Result<(String, u64), Failure> {
        let failed = |doing: &str, error: std::io::Error| Failure::Failed(format!("{doing}: {error}"));
        let pair = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let (own, theirs) = pair.map_err(|error| failed("a socket for a process", error.into()))?;
        let anchors = self.bundle.as_ref().map_or(NONE, |bundle| bundle.path.to_str().unwrap_or(NONE));
        let mut command = Command::new("/proc/self/exe");
        command
            .args([FIRST, word(self.step), libcrypto.unwrap_or(NONE), anchors, authority.unwrap_or(NONE)])
            .stdin(theirs)
            .stdout(Stdio::piped());
        let child = command.spawn().map_err(|error| failed("a process", error))?;
        // The command's copy of the process's socket is closed, so that the server notices the process's end.
        drop(command);
        let served = self.server.as_ref().map(|server| server.answer(&own, LIMIT)).transpose();
        // The socket is closed for a process whose server has given up.
        drop(own);
        let (said, status, used_ns) = ended(child)?;
        if status != 0 {
            let words = said.trim();
            return Err(Failure::Failed(format!("a fresh process ended with status {status}: {words}")));
        }
        served?;
        Ok((said, used_ns))
    }

    fn first(&self) -> Result<(String, u64), Failure> {
        let authority = self.server.as_ref().map(|server| server.authority_pem.as_str());
        self.start(self.libcrypto.as_deref(), authority)
    }

    /// Returns the output of a process that did everything.
    fn expected(&self) -> String {
        let own = usize::from(self.server.is_some());
        let anchors = self.bundle.as_ref().map_or(0, |bundle| bundle.anchors) + own;
        format!("{} {anchors}\n", word(self.step))
    }
}

impl Primitive for First {
    fn perform(&mut self) -> Result<(), Failure> {
        let (said, used_ns) = self.first()?;
        self.used_ns += used_ns;
        let expected = self.expected();
        if said == expected {
            return Ok(());
        }
        Err(Failure::Failed(format!("a fresh process said {said:?}, where {expected:?} is right")))
    }

    fn prove(&mut self) -> Result<Proof, Failure> {
        let mut proof = Proof::default();
        let (said, _) = self.first()?;
        let what = match self.step {
            Step::Nothing => "a process that does nothing".to_owned(),
            _ => format!("a fresh process up to its {}", said.trim().replacen(' ', ", trust anchors: ", 1)),
        };
        proof.accept(&what, said == self.expected())?;
        if self.step >= Step::Library {
            proof.refuse("a library that is not there", self.start(Some("/dev/null"), None).is_err())?;
        }
        if self.step == Step::Handshake {
            let unknown = self.start(self.libcrypto.as_deref(), None);
            proof.refuse("a server that no trust anchor has signed", unknown.is_err())?;
        }
        Ok(proof)
    }

    fn elsewhere_ns(&self) -> Option<u64> {
        Some(self.used_ns)
    }
}

fn word(step: Step) -> &'static str {
    STEPS.iter().find(|(_, one)| *one == step).map_or("nothing", |(word, _)| word)
}

/// Returns a child's output, status and CPU time. The child is waited for even if its output cannot be read.
fn ended(mut child: Child) -> Result<(String, c_int, u64), Failure> {
    let mut said = Vec::new();
    let read = child.stdout.take().map_or(Ok(0), |mut output| output.read_to_end(&mut said));
    if read.is_err() {
        // The child may not end by itself; if it has ended the signal has no effect.
        let _ = child.kill();
    }
    let (status, used_ns) = waited_for(child.id())?;
    read.map_err(|error| Failure::Failed(format!("a process's answer: {error}")))?;
    Ok((String::from_utf8_lossy(&said).into_owned(), status, used_ns))
}

/// Returns the exit status of a child, and its CPU time, user and system.
fn waited_for(pid: u32) -> Result<(c_int, u64), Failure> {
    let mut status = 0;
    // SAFETY: zeros are a valid `rusage`.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: the child is this process's own, and the kernel writes both.
        let found = unsafe { libc::wait4(pid as libc::pid_t, &mut status, 0, &mut used) };
        if found == pid as libc::pid_t {
            break;
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(Failure::Failed(format!("a process that was started cannot be waited for: {error}")));
        }
    }
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    let ended =
        if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 + libc::WTERMSIG(status) };
    Ok((ended, ns(used.ru_utime) + ns(used.ru_stime)))
}

/// Runs the fresh process: `STEP LIBCRYPTO ANCHORS AUTHORITY`, with the server on standard input. It prints
/// on standard output the step that it reached, and its number of trust anchors.
pub fn main(arguments: &[String]) -> i32 {
    match go(arguments) {
        Ok(said) => {
            println!("{said}");
            0
        }
        Err(failure) => {
            println!("{}", failure.into_words());
            1
        }
    }
}

fn go(arguments: &[String]) -> Result<String, Failure> {
    let [word, libcrypto, anchors, authority] = arguments else {
        return Err(Failure::Failed("STEP LIBCRYPTO ANCHORS AUTHORITY".to_owned()));
    };
    let Some((_, step)) = STEPS.iter().find(|(known, _)| known == word) else {
        return Ok(format!("{word} 0"));
    };
    let given = |file: &String| (file != NONE).then(|| file.clone());
    let api = library::open(given(libcrypto).as_deref())?;
    if *step == Step::Library {
        return Ok(format!("{word} 0"));
    }
    let bundle = given(anchors).map(|path| Bundle { path: c_name(&path), anchors: 0 });
    let making = Making { api, bundle };
    let context = making.context()?;
    if *step == Step::Handshake {
        if let Some(pem) = given(authority) {
            trust(&making, &context, &pem)?;
        }
        shake_hands(api, &context)?;
    }
    Ok(format!("{word} {}", making.anchors(&context)))
}

/// Adds the server's authority to a context's trust anchors, like an application with its own authority.
fn trust(making: &Making, context: &Owned, pem: &str) -> Result<(), Failure> {
    let api = making.api;
    for certificate in api.certificates(pem)? {
        // SAFETY: context, store and certificate are alive; the store takes its own reference.
        let done = unsafe {
            (api.X509_STORE_add_cert)((api.SSL_CTX_get_cert_store)(context.raw()), certificate.raw())
        };
        api.crypto.ensure(done == 1, "X509_STORE_add_cert")?;
    }
    Ok(())
}

fn shake_hands(api: &Api, context: &Owned) -> Result<(), Failure> {
    // SAFETY: the context is alive, this owner must free the connection, and standard input stays open.
    unsafe {
        let connection = api.crypto.own((api.SSL_new)(context.raw()), api.SSL_free, "SSL_new")?;
        (api.SSL_set_connect_state)(connection.raw());
        api.crypto.ensure((api.SSL_set_fd)(connection.raw(), 0) == 1, "SSL_set_fd")?;
        api.crypto.ensure((api.SSL_do_handshake)(connection.raw()) == 1, "a handshake")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::identity;

    /// A child without a wait remains until its parent ends.
    #[test]
    fn a_child_is_waited_for_whatever_it_prints() {
        for (output, expected) in [
            (Stdio::piped(), Some("\u{fffd} 7")),
            // A folder can be opened but not read.
            (Stdio::null(), None),
        ] {
            let script = ["-c", "printf '\\377 7'; exit 3"];
            let mut child = Command::new("sh").args(script).stdout(output).spawn().expect("a shell");
            if expected.is_none() {
                let folder = std::fs::File::open("/").expect("a folder");
                child.stdout = Some(OwnedFd::from(folder).into());
            }
            let pid = child.id();
            let said = ended(child).map(|(said, status, _)| (said, status)).ok();
            assert_eq!(expected.map(|words| (words.to_owned(), 3)), said);
            // SAFETY: null means that no status is requested.
            let again = unsafe { libc::waitpid(pid as libc::pid_t, std::ptr::null_mut(), libc::WNOHANG) };
            assert_eq!(-1, again, "the child was left");
        }
    }

    #[test]
    fn a_silent_client_is_given_up() {
        let Ok(api) = library::open(None) else { return };
        let Identity { chain_pem, key_pem } = identity("ecdsa-p256");
        let served = Served::of(api, &format!("{key_pem}{chain_pem}{chain_pem}")).expect("a server");
        let pair = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let (own, _theirs) = pair.expect("a pair of sockets");
        assert!(served.answer(&own, Duration::from_millis(1)).is_err());
    }
}
