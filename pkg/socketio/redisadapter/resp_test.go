package redisadapter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// pushes reads all that there is, in words.
func pushes(in io.Reader) (all []string, err error) {
	for r := newRESPReader(in); ; {
		p, err := r.push()
		if err != nil {
			return all, err
		}
		all = append(all, fmt.Sprintf("%d %q %q", p.kind, p.channel, p.payload))
	}
}

func TestPushes(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 3*linkBuffer)
	for in, want := range map[string]string{
		"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$3\r\na\r\n\r\n":                             `1 "c" "a\r\n"`,
		"*3\r\n$8\r\nsmessage\r\n$1\r\nc\r\n$0\r\n\r\n":                                 `1 "c" ""`,
		">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:12\r\n":                                   `2 "c" "12"`,
		"*3\r\n$12\r\nsunsubscribe\r\n$-1\r\n:0\r\n":                                    `3 "" "0"`,
		"*2\r\n$4\r\npong\r\n$0\r\n\r\n":                                                `0 "" ""`,
		"+PONG\r\n":                                                                     `0 "" ""`,
		fmt.Sprintf("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$%d\r\n%s\r\n", len(long), long): fmt.Sprintf("1 \"c\" %q", long),
		fmt.Sprintf("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$%d\r\n%s\r\n", linkBuffer-2, long[:linkBuffer-2]): fmt.Sprintf("1 \"c\" %q", long[:linkBuffer-2]),
	} {
		for name, reader := range map[string]io.Reader{"whole": strings.NewReader(in + in), "in bytes": iotest.OneByteReader(strings.NewReader(in + in))} {
			got, err := pushes(reader)
			if !errors.Is(err, io.EOF) || len(got) != 2 || got[0] != want || got[1] != want {
				t.Errorf("%.80q %s: got %.200q and %v, want it twice", in, name, got, err)
			}
		}
	}
}

func TestPushRefuses(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"\r\n", "*\r\n", "*0\r\n", "*-1\r\n", "*17\r\n", "*3\n", "hello\r\n", "$3\r\nabc\r\n", "*1\r\n*1\r\n$1\r\na\r\n",
		"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$3\r\nabcd\r\n", "*2\r\n$7\r\nmessage\r\n$1\r\nc\r\n",
		"*4\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\na\r\n$1\r\nb\r\n", "*1\r\n$99999999999\r\n", "*1\r\n$-2\r\n", strings.Repeat("*", 2*linkBuffer),
	} {
		if got, err := pushes(strings.NewReader(in)); !errors.Is(err, errRESP) || len(got) > 0 {
			t.Errorf("%.40q: got %q and %v, want it refused", in, got, err)
		}
	}
	var refused redisError
	if _, err := pushes(strings.NewReader("-MOVED 7 127.0.0.1:1\r\n")); !errors.As(err, &refused) || !strings.Contains(err.Error(), "MOVED 7") {
		t.Errorf("got %v, want the error of Redis", err)
	}
	if _, err := pushes(strings.NewReader("*3\r\n$7\r\nmess")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, want that the end comes too early", err)
	}
}

func TestAppendCommand(t *testing.T) {
	t.Parallel()
	if got, want := string(appendCommand(nil, "SUBSCRIBE", "a\r\n", "")), "*3\r\n$9\r\nSUBSCRIBE\r\n$3\r\na\r\n\r\n$0\r\n\r\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Whatever comes, and however it is cut, it is read alike, and never is more allocated than has come.
func FuzzPush(f *testing.F) {
	for _, seed := range []string{
		"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$3\r\na\r\n\r\n", "+PONG\r\n*2\r\n$4\r\npong\r\n$0\r\n\r\n", "-ERR\r\n", "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n",
		"*1\r\n$9999999999\r\n", "*1\r\n$-1\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		whole, wholeErr := pushes(bytes.NewReader(in))
		cut, cutErr := pushes(iotest.OneByteReader(bytes.NewReader(in)))
		if fmt.Sprint(whole, wholeErr) != fmt.Sprint(cut, cutErr) {
			t.Errorf("got %q, %v in one piece and %q, %v in bytes", whole, wholeErr, cut, cutErr)
		}
	})
}

func BenchmarkPush(b *testing.B) {
	message := appendCommand(nil, "message", "socket.io#/message#app-user#", strings.Repeat("x", 350))
	r := newRESPReader(&endless{message})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.push(); err != nil {
			b.Fatal(err)
		}
	}
}

// endless is the same message again and again.
type endless struct{ message []byte }

func (e *endless) Read(b []byte) (n int, _ error) {
	for n+len(e.message) <= len(b) {
		n += copy(b[n:], e.message)
	}
	return n, nil
}
