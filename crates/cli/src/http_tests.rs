//! Responses that a server may send, complete and broken, in pieces of any size.

use super::*;

/// Returns the result of reading these bytes in pieces of the given size.
fn read_in(bytes: &[u8], piece: usize) -> Result<Response, HttpError> {
    let mut at = 0;
    receive(&mut |buffer| {
        let count = piece.min(bytes.len() - at).min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[at..at + count]);
        at += count;
        if count == 0 { Err(HttpError::End) } else { Ok(count) }
    })
}

#[test]
fn bodies_by_length_in_chunks_and_to_the_end() {
    for (text, status, body) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX: y\r\n\r\nabcd", 200, "abc"),
        ("HTTP/1.1 500 Oh\r\ncontent-LENGTH:3\r\n\r\nabc", 500, "abc"),
        ("HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n", 401, ""),
        ("HTTP/1.0 200\r\n\r\nall of it", 200, "all of it"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nContent-Length: 9\r\n\r\n2;x=y\r\nab\r\n A \r\n0123456789\r\n0\r\nT: z\r\n\r\n",
            200,
            "ab0123456789",
        ),
    ] {
        for piece in [1, 2, 7, 1000] {
            let answer = read_in(text.as_bytes(), piece).unwrap();
            assert_eq!((answer.status, answer.body.as_slice()), (status, body.as_bytes()), "{text:?} {piece}");
        }
    }
}

#[test]
fn what_is_no_answer() {
    for (text, words) in [
        ("", "EOF"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n", "EOF"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", "EOF"),
        ("HTTP/1.1 20\r\n\r\n", "HTTP error: Invalid status line"),
        ("SSH-2.0-OpenSSH\r\n\r\n", "HTTP error: Invalid status line"),
        ("HTTP/1.1-200-OK\r\n\r\n", "HTTP error: Invalid status line format"),
        ("HTTP/1.1 OK! 200\r\n\r\n", "HTTP error: Invalid status code"),
        ("HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "HTTP error: Header missing colon (:)"),
        ("HTTP/1.1 200 OK\r\n: x\r\n\r\n", "HTTP error: Empty header name"),
        ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "HTTP error: Invalid Content-Length"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "HTTP error: Invalid chunk size"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", "EOF"),
    ] {
        for piece in [1, 1000] {
            assert_eq!(read_in(text.as_bytes(), piece).unwrap_err().to_string(), words, "{text:?}");
        }
    }
}

/// limit: HEAD_BYTES_MAX at
/// limit: HEAD_BYTES_MAX above
#[test]
fn a_head_of_that_size_and_no_more() {
    let head = |size: usize| {
        let line = "HTTP/1.1 200 OK\r\nX: ";
        format!("{line}{}\r\n\r\n", "y".repeat(size - line.len()))
    };
    // The end mark would be complete in the first byte above the limit.
    assert!(read_in(head(HEAD_BYTES_MAX - 3).as_bytes(), 1).is_ok());
    assert!(matches!(read_in(head(HEAD_BYTES_MAX - 2).as_bytes(), 1), Err(HttpError::TooLarge)));
}

/// limit: BODY_BYTES_MAX at
/// limit: BODY_BYTES_MAX above
#[test]
fn a_body_of_that_size_and_no_more() {
    let by_length =
        |size: usize| read_in(format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n").as_bytes(), 1000);
    let in_chunks = |size: usize| {
        let text = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n{size:x}\r\n");
        read_in(text.as_bytes(), 1000)
    };
    // The size is accepted, and then the bytes are missing.
    assert!(matches!(by_length(BODY_BYTES_MAX), Err(HttpError::End)));
    assert!(matches!(by_length(BODY_BYTES_MAX + 1), Err(HttpError::TooLarge)));
    assert!(matches!(in_chunks(BODY_BYTES_MAX - 1), Err(HttpError::End)));
    assert!(matches!(in_chunks(BODY_BYTES_MAX), Err(HttpError::TooLarge)));
}
