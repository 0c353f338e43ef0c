//! Functions of a C library, bound at run time.

/// Makes a type `Api` with a field for each function, and `Api::bind`, which looks all of them up by name. A `part`
/// binds itself.
macro_rules! bind {
    (parts { $($part:ident: $kind:ty;)* }
     required { $(fn $name:ident($($argument:ty),*) $(-> $answer:ty)?;)* }
     optional { $(fn $maybe:ident($($given:ty),*) $(-> $returns:ty)?;)* }) => {
        #[allow(non_snake_case)]
        #[derive(Clone)]
        pub struct Api {
            $(pub $part: $kind,)*
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $answer)?,)*
            $(pub $maybe: Option<unsafe extern "C" fn($($given),*) $(-> $returns)?>,)*
        }

        impl Api {
            /// The name of what is missing, if anything is.
            pub fn bind(library: &Library) -> Result<Api, &'static str> {
                unsafe {
                    Ok(Api {
                        $($part: <$kind>::bind(library)?,)*
                        $($name: *library.get(concat!(stringify!($name), "\0"))
                            .map_err(|_| stringify!($name))?,)*
                        $($maybe: library.get(concat!(stringify!($maybe), "\0")).ok().map(|symbol| *symbol),)*
                    })
                }
            }
        }
    };
}

pub(crate) use bind;
