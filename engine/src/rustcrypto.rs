use crate::contract::{Failure, Receipt, Task};
use crate::operation::Operation;
use crate::provider::{Offers, Provider};
pub struct RustCrypto;
impl Provider for RustCrypto {
    fn receipt(&self) -> Receipt { Receipt::default() }
    fn offers(&self) -> Offers { vec![] }
    fn prepare(&self, _: &Task) -> Result<Box<dyn Operation>, Failure> { Err(Failure::Unsupported("not yet".into())) }
}
