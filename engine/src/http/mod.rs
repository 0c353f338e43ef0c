//! HTTP/1.1 messages: requests as the load client builds them and as the embedded server reads them, and answers as they
//! come in. What both halves of a sign-in scheme know of the wire.

mod head;
pub mod page;
pub mod prebuilt;
pub mod request;
pub mod response;
