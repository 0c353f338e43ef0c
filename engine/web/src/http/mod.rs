//! HTTP/1.1 messages: requests as the load client builds them and the embedded server parses them, and
//! answers as they arrive. Both halves of a sign-in scheme use these types.

mod head;
pub mod page;
pub mod prebuilt;
pub mod request;
pub mod response;
