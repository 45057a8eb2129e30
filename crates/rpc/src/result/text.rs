//! The result section of a method's help: Core's `RPCResult::ToSections`.
//!
//! Input: the description of an answer. Output: text, with one line per field and its sentence beside it.

use super::{Case, Field, Form, Value, each_field};

/// The sections of an answer, one for each of its cases.
pub(crate) fn sections(value: &Value) -> String {
    let mut text = String::new();
    let mut printed = Vec::new();
    let whole = [Case { condition: "", value: *value }];
    let cases = match value.form {
        Form::OneOf(cases) => cases,
        _ => &whole[..],
    };
    for case in cases {
        let mut page = Page { rows: Vec::new(), printed: &mut printed };
        page.value(&case.value, &Place { indent: 0, name: None, is_inner: false, is_optional: false });
        text += &match case.condition {
            "" => "\nResult:\n".to_owned(),
            condition => format!("\nResult ({condition}):\n"),
        };
        text += &table(&page.rows);
    }
    text
}

/// Two columns: the text on the right is aligned.
pub(crate) fn table(rows: &[(String, String)]) -> String {
    let width = rows.iter().map(|(left, _)| left.len()).max().unwrap_or(0) + 4;
    let mut text = String::new();
    for (left, right) in rows {
        match right.is_empty() {
            true => text += left,
            false => {
                let right = right.replace('\n', &format!("\n{}", " ".repeat(width)));
                text += &format!("{left:width$}{right}");
            }
        }
        text.push('\n');
    }
    text
}

/// Where a value is printed.
#[derive(Clone, Copy)]
struct Place<'a> {
    indent: usize,
    name: Option<&'a str>,
    is_inner: bool,
    is_optional: bool,
}

struct Page<'a> {
    rows: Vec<(String, String)>,
    /// Inline objects of this method that were printed.
    printed: &'a mut Vec<&'static [Field]>,
}

impl Page<'_> {
    fn value(&mut self, value: &Value, place: &Place<'_>) {
        let (left, kind) = match value.form {
            Form::Text => ("\"str\"", "string"),
            Form::Hex => ("\"hex\"", "string"),
            Form::Number | Form::Amount => ("n", "numeric"),
            Form::Time => ("xxx", "numeric"),
            Form::Bool => ("true|false", "boolean"),
            Form::Null => ("null", "json null"),
            Form::Any => ("any", "any"),
            Form::Object([]) => ("{}", "empty JSON object"),
            Form::Object(fields) => return self.object(value, fields, place),
            Form::Map(inner) => {
                self.open("{", "json object", value, place);
                let name = Some(value.key);
                self.value(&value.element(inner), &Place { name, ..place.inner() });
                return self.close("}", true, place);
            }
            Form::Array(inner) => {
                self.open("[", "json array", value, place);
                self.value(&value.element(inner), &place.inner());
                return self.close("]", true, place);
            }
            Form::OneOf(cases) => return self.one_of(value, cases, place),
        };
        let comma = if place.is_inner { "," } else { "" };
        self.rows.push((format!("{}{left}{comma}", place.head()), describe(kind, value.words, place)));
    }

    fn object(&mut self, value: &Value, fields: &'static [Field], place: &Place<'_>) {
        self.open("{", "json object", value, place);
        self.fields(fields, place);
        self.close("}", false, place);
    }

    fn fields(&mut self, fields: &'static [Field], place: &Place<'_>) {
        for field in fields {
            match field.value.form {
                Form::Object(inner) if field.is_inline && self.printed.contains(&inner) => {
                    let left = format!("{}...,", " ".repeat(place.indent + 2));
                    let mut count = 0;
                    each_field(inner, &mut |_| count += 1);
                    self.rows.push((left, format!("the same {count} fields as above")));
                }
                Form::Object(inner) if field.is_inline => {
                    self.fields(inner, place);
                    self.printed.push(inner);
                }
                _ => {
                    let is_optional = field.is_optional;
                    self.value(&field.value, &Place { name: Some(field.name), is_optional, ..place.inner() });
                }
            }
        }
    }

    /// Prints all cases of a value in the same place.
    fn one_of(&mut self, value: &Value, cases: &[Case], place: &Place<'_>) {
        for case in cases {
            let words = if case.value.words.is_empty() { value.words } else { case.value.words };
            self.value(&Value { words, ..case.value }, place);
        }
    }

    fn open(&mut self, bracket: &str, kind: &str, value: &Value, place: &Place<'_>) {
        self.rows.push((format!("{}{bracket}", place.head()), describe(kind, value.words, place)));
    }

    fn close(&mut self, bracket: &str, continues: bool, place: &Place<'_>) {
        let indent = " ".repeat(place.indent);
        if continues {
            self.rows.push((format!("{indent}  ..."), String::new()));
        } else if let Some((left, _)) = self.rows.last_mut() {
            // No comma follows the last field.
            left.pop();
        }
        let comma = if place.is_inner { "," } else { "" };
        self.rows.push((format!("{indent}{bracket}{comma}"), String::new()));
    }
}

impl Place<'_> {
    /// The place of a part.
    fn inner(&self) -> Place<'static> {
        Place { indent: self.indent + 2, name: None, is_inner: true, is_optional: false }
    }

    /// What precedes the value on its line.
    fn head(&self) -> String {
        let indent = " ".repeat(self.indent);
        match self.name {
            Some(name) => format!("{indent}\"{name}\" : "),
            None => indent,
        }
    }
}

fn describe(kind: &str, words: &str, place: &Place<'_>) -> String {
    let optional = if place.is_optional { ", optional" } else { "" };
    let space = if words.is_empty() { "" } else { " " };
    format!("({kind}{optional}){space}{words}")
}
