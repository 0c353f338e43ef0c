//! Each function of a libcrypto that is bound has the type that OpenSSL's headers and AWS-LC's give it.

use super::api::{Api, RawParam};
use super::dialect::{Fork, OpenSsl};
use crate::binding::headers::{AWS_LC, OPENSSL, named};

named! { RawParam: "OSSL_PARAM"; }

#[test]
fn a_function_has_the_type_that_the_headers_give_it() {
    let (openssl, aws_lc) =
        (OPENSSL.compare(&Api::signatures(), &RawParam::fields()), AWS_LC.compare(&Api::signatures(), &[]));
    assert!(openssl.differs.is_empty() && aws_lc.differs.is_empty(), "{openssl:#?} {aws_lc:#?}");
    let nowhere: Vec<&String> = openssl.undeclared.intersection(&aws_lc.undeclared).collect();
    assert!(nowhere.is_empty(), "functions that no header declares: {nowhere:?}");
}

#[test]
fn a_function_of_a_dialect_has_the_type_that_its_headers_give_it() {
    for compared in [OPENSSL.compare(&OpenSsl::signatures(), &[]), AWS_LC.compare(&Fork::signatures(), &[])] {
        assert!(compared.differs.is_empty() && compared.undeclared.is_empty(), "{compared:#?}");
    }
}

/// Else the comparison could be one that never fails, and a function could stand here that needs no dialect.
#[test]
fn a_function_of_the_other_dialect_differs() {
    for compared in [OPENSSL.compare(&Fork::signatures(), &[]), AWS_LC.compare(&OpenSsl::signatures(), &[])] {
        assert_eq!(Fork::signatures().len(), compared.differs.len(), "{compared:#?}");
    }
}
