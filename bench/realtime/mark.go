package main

import (
	"bytes"
	"strconv"
	"time"
)

// mark identifies the reply of a delivery. It is a string in the reply's data, which every gateway passes on unchanged,
// or in the text of a part.
type mark struct {
	trial    int
	room     int
	sequence int           // from 1 in its room
	planned  time.Duration // since the generator started
}

var (
	markBegin = []byte(`"mark":"`)
	partBegin = []byte(`"text":"` + partMark)
)

// partMark is the prefix of a part's text, before its mark.
const partMark = "part "

// appendData appends the data of a marked reply.
func (m mark) appendData(dst []byte) []byte {
	dst = append(dst, `{"text":"Your order 4711 has left our warehouse. It will be with you tomorrow before noon.",`...)
	return append(m.append(append(dst, markBegin...)), `"}`...)
}

// text returns the text of a marked part: about as much as a language model generates in 60 ms.
func (m mark) text() string {
	return string(append(m.append([]byte(partMark)), " and a few words. "...))
}

func (m mark) append(dst []byte) []byte {
	for _, n := range []int64{int64(m.trial), int64(m.room), int64(m.sequence), m.planned.Microseconds()} {
		dst = append(strconv.AppendInt(dst, n, 10), '.')
	}
	return dst
}

// parseMark finds the mark in an event.
func parseMark(packet []byte) (m mark, ok bool) {
	_, rest, ok := bytes.Cut(packet, markBegin)
	if !ok {
		if _, rest, ok = bytes.Cut(packet, partBegin); !ok {
			return mark{}, false
		}
	}
	var parts [4]int
	part := 0
	for _, c := range rest {
		switch {
		case c == '.':
			if part++; part == len(parts) {
				return mark{parts[0], parts[1], parts[2], time.Duration(parts[3]) * time.Microsecond}, true
			}
		case '0' <= c && c <= '9':
			parts[part] = parts[part]*10 + int(c-'0')
		default:
			return mark{}, false
		}
	}
	return mark{}, false
}
