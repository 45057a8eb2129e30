//! [`result!`] and [`cases!`]: types of answers with their descriptions.
//!
//! Input: a type with a sentence on each field, as a doc comment. Output: the type and its [`super::Answer`].

/// Defines objects. The doc comment of a field is its sentence in the help. `#[name("..")]` gives the name of the field
/// if it is no Rust name. `#[each("..")]` describes the elements of an array, and `#[each(key "name" "..")]` those of a
/// map. A field of type `Option` is omitted if it is `None`.
macro_rules! result {
    (
        $(#[doc = $about:literal])*
        $vis:vis struct $name:ident $(<$($life:lifetime)? $($of:ident)?>)? {$(
            $(#[doc = $words:literal])*
            $(#[name($own:literal)])?
            $(#[each($(key $key:literal)? $each:literal)])?
            $field:ident: $type:ty,
        )+}
    ) => {
        $(#[doc = $about])*
        #[derive(Debug)]
        $vis struct $name $(<$($life)? $($of)?>)? {$(
            $(#[doc = $words])*
            $field: $type,
        )+}

        impl $(<$($life)? $($of: $crate::result::Answer)?>)? $crate::result::Answer
            for $name $(<$($life)? $($of)?>)?
        {
            const FORM: $crate::result::Form = $crate::result::Form::Object(&[$(
                $crate::result::Field {
                    name: $crate::result::field_name!($field $($own)?),
                    is_optional: <$type as $crate::result::Answer>::IS_OPTIONAL,
                    is_inline: <$type as $crate::result::Answer>::IS_INLINE,
                    value: $crate::result::Value {
                        form: <$type as $crate::result::Answer>::FORM,
                        words: concat!($($words),*).trim_ascii(),
                        key: concat!($($($key)?)?),
                        each: concat!($($each)?),
                    },
                },
            )+]);

            fn write(&self, out: &mut Vec<u8>) {
                out.push(b'{');
                self.write_fields(out);
                $crate::result::close(b'}', out);
            }

            fn write_fields(&self, out: &mut Vec<u8>) {
                $(
                    let key = concat!("\"", $crate::result::field_name!($field $($own)?), "\":");
                    $crate::result::write_member(key, &self.$field, out);
                )+
            }

            fn write_field(&self, name: &str, out: &mut Vec<u8>) -> bool {
                match name {
                    $($crate::result::field_name!($field $($own)?) => self.$field.write(out),)+
                    _ => return false,
                }
                true
            }
        }
    };
}

/// Defines a choice of answers. The doc comment of a case describes its value; `#[when("..")]` gives its condition.
macro_rules! cases {
    (
        $(#[doc = $about:literal])*
        $vis:vis enum $name:ident {$(
            $(#[doc = $words:literal])*
            $(#[when($condition:literal)])?
            $(#[each($(key $key:literal)? $each:literal)])?
            $case:ident($type:ty),
        )+}
    ) => {
        $(#[doc = $about])*
        #[derive(Debug)]
        $vis enum $name {$(
            $(#[doc = $words])*
            $case($type),
        )+}

        impl $crate::result::Answer for $name {
            const FORM: $crate::result::Form = $crate::result::Form::OneOf(&[$(
                $crate::result::Case {
                    condition: concat!($($condition)?),
                    value: $crate::result::Value {
                        form: <$type as $crate::result::Answer>::FORM,
                        words: concat!($($words),*).trim_ascii(),
                        key: concat!($($($key)?)?),
                        each: concat!($($each)?),
                    },
                },
            )+]);

            fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $($name::$case(value) => $crate::result::Answer::write(value, out),)+
                }
            }
        }
    };
}

/// The name of a field in JSON.
macro_rules! field_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $own:literal) => {
        $own
    };
}

pub(crate) use {cases, field_name, result};
