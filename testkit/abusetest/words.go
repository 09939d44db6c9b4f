package abusetest

import "strings"

// likely are values that are valid for some parameter.
var likely = []string{
	"true", "false", "1", "10", "0198b1c7-1a2b-7c3d-8e4f-5a6b7c8d9e0f", "99999999-9999-4999-8999-999999999999", "sara@example.com",
	"989121234567", "bytes=0-3", `"etag"`, "Sat, 21 Nov 2026 10:00:00 GMT", "a-key-of-mine",
	"1764000000000.0198b1c7-1a2b-7c3d-8e4f-5a6b7c8d9e0f", "2026-11-21T12:00:00Z", "0-0-0-0", "open", "10m",
}

// words are texts that often break programs.
var words = []string{
	"", " ", "\t", "0", "-1", "1", "1000", "1001", "2147483648", "9223372036854775808", "-0", "1e5", "0x10", "1.5", "NaN", "Infinity", "null", "undefined", "true",
	"[]", "{}", `{"$gt":""}`, "$where", "a.b", "__proto__", "../../etc/passwd", `..\..\x`, "/", "//", "%", "%00", "%2e%2e%2f", "%zz", "+", "&a=b", ";", "#", "?",
	"'", `"`, "`", "<script>alert(1)</script>", "' OR '1'='1", "${jndi:ldap://127.0.0.1/x}", "{{7*7}}", "\x00", "\x01\x02", "\r\nX-Injected: 1", "\u202e", "\ufeff", "\u2028",
	"é", "e\u0301", "ß", "İ", "ı", "漢字", "😀👩‍👩‍👧‍👦", "\xff\xfe", "\xc3\x28", "\xed\xa0\x80", "\xf4\x90\x80\x80", strings.Repeat("a", 256), strings.Repeat("a", 257), strings.Repeat("a", 5000),
	strings.Repeat("😀", 1100), strings.Repeat("é", 4097), strings.Repeat("9", 400), "00000000-0000-0000-0000-000000000000", "99999999-9999-4999-8999-99999999999G",
	"0D9F5C7E-6C1D-4B7A-8F1E-2A3B4C5D6E7F", "{0d9f5c7e-6c1d-4b7a-8f1e-2a3b4c5d6e7f}", "urn:uuid:0d9f5c7e-6c1d-4b7a-8f1e-2a3b4c5d6e7f", "a@b", "a@b.c@d", "\"a b\"@example.com", "sara@exämple.com",
	"<sara@example.com>", "Sara <sara@example.com>", "sara@example.com\n", "+989121234567", "٠١٢٣٤٥٦٧٨٩٠", "(0) 912-123-45-67", "https://example.com/", "javascript:alert(1)", "data:text/html,x",
	"1764000000000.", ".99999999-9999-4999-8999-999999999999", "9999999999999999.x", "-62135596800001.99999999-9999-4999-8999-999999999999", "9999-12-31T23:59:59Z", "-1h", "100000000h", "18446744073709551615-0-0-0",
	"TEXT", "IMAGE", "CAROUSEL", "INTERACTIVE", "TEMPLATE", "MULTIPLE_CHOICE", "MULTIPLE_CHOICE_REPLY", "text",
}

// headerNames are headers that net/http, the router, the API or a proxy reads.
var headerNames = []string{
	"Accept", "Accept-Encoding", "Authorization", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Cookie", "Expect", "Forwarded", "Host",
	"Idempotency-Key", "If-Match", "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since", "Last-Event-Id", "Origin", "Range", "Referer", "Sec-Fetch-Site",
	"Access-Control-Request-Method", "Access-Control-Request-Headers", "Te", "Traceparent", "Tracestate", "Transfer-Encoding", "Upgrade", "User-Agent", "X-Access-Token",
	"X-Csrf-Token", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Http-Method-Override", "X-Real-Ip", "X-Request-Id", "X-Url-Scheme",
}

var headerValues = []string{
	"bytes=0-", "bytes=-1", "bytes=-0", "bytes=5-2", "bytes=0-0,2-3,5-", "bytes=99999999999999999999-", "bytes=" + strings.Repeat("0-1,", 300) + "0-1", "items=0-1", "bytes", "bytes=a-b",
	"*", `W/"x"`, `"x", "y"`, `"`, `"unterminated`, "Sat, 31 Feb 2026 99:00:00 GMT", "0", "gzip", "identity", "chunked", "websocket", "100-continue", "close", "null", "https://example.com",
	"https://example.com:99999", "HTTPS://EXAMPLE.COM", "http://[::1", "file://", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-00000000000000000000000000000000-0000000000000000-00",
	"ff-x-y-z", "127.0.0.1, 10.0.0.1", "for=\"[::1]\";proto=https", "https", "javascript", "a b", "a,b", `"a\"b"`, `"quoted-key"`, `"quoted-key`, `:YQ==:`, "?1", `"k";a=1`, "example.com:80:80", "[::1]:80", "exa mple",
	"application/json", "text/html", "*/*;q=2", "DELETE", "CONNECT", "x-access-token, authorization", strings.Repeat("x", 256), strings.Repeat("x", 8000), "é", "\xff",
}

var mediaTypes = []string{
	"application/json", "APPLICATION/JSON", "application/json; charset=utf-8", "application/json; charset=utf-16", "application/json;", "application/json; a=b; a=c", "application/vnd.api+json", "text/json",
	"text/plain", "application/x-www-form-urlencoded", "application/xml", "application/octet-stream", "application/json, text/plain", "json", "/", ";", "", "multipart/form-data", "multipart/form-data; boundary=",
	"multipart/form-data; boundary=other", "multipart/form-data; boundary=parley-abuse; boundary=x", `multipart/form-data; boundary="parley-abuse"`, "multipart/form-data; boundary=" + strings.Repeat("b", 71),
	"multipart/form-data; boundary=\"a\u00e9b\"", "multipart/mixed; boundary=parley-abuse", "multipart/related; boundary=parley-abuse", "multipart/byteranges; boundary=parley-abuse",
}

var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "BREW", "get", "Post", "X-1", "*"}

// contents are small files, some with a misleading type.
var contents = []string{
	"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00", "GIF89a\x01\x00\x01\x00", "\xff\xd8\xff\xe0\x00\x10JFIF", "%PDF-1.7\n", "OggS\x00\x02", "plain words",
	"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", "<!doctype html><script>alert(1)</script>", "PK\x03\x04", "MZ\x90\x00", "\x00", "", "\x00\x00\x00\x18ftypmp42", "RIFF\x00\x00\x00\x00WEBPVP8 ", "ID3\x03",
}
