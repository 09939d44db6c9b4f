package config

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The rules of the tag `valid` on a variable, which [Check] applies. An empty string passes all of them: the option
// `required` of the tag env rejects it.
//
//	valid:"oneof nats s3"    one of these words or numbers
//	valid:"min 2m"           a number or duration of at least 2m
//	valid:"range 0 1024"     a number or duration in this range
//	valid:"addr"             a listen address; see [ValidAddr]
//	valid:"loopback"         an address that only this machine reaches; see [LoopbackAddr]
//	valid:"url"              an http or https URL; see [WebURL]
//	valid:"baseurl"          a URL to which a path can be appended; see [BaseURL]

// invalid returns the problem of a variable, or "".
func invalid(f field) string {
	rule, arguments, _ := strings.Cut(f.tag.Get("valid"), " ")
	args := strings.Fields(arguments)
	if f.value.Kind() == reflect.String {
		return invalidText(f, rule, args)
	}
	switch rule {
	case "":
		return ""
	case "oneof":
		if !slices.Contains(args, strconv.FormatInt(f.value.Int(), 10)) {
			return f.name + " must be " + list(args)
		}
	case "min":
		if f.value.Int() < limitOf(f, args[0]) {
			return f.name + " " + atLeast(args[0])
		}
	case "range":
		if n := f.value.Int(); n < limitOf(f, args[0]) || n > limitOf(f, args[1]) {
			return f.name + " must be " + args[0] + " to " + args[1]
		}
	default:
		panic("config: unknown rule " + rule + " of " + f.name)
	}
	return ""
}

func invalidText(f field, rule string, args []string) string {
	text := f.value.String()
	if text == "" {
		return ""
	}
	ok, expected := true, ""
	switch rule {
	case "":
	case "oneof":
		ok, expected = slices.Contains(args, text), list(args)
	case "addr":
		ok, expected = ValidAddr(text), "host:port or :port"
	case "loopback":
		ok, expected = LoopbackAddr(text), "a loopback address such as 127.0.0.1:6060"
	case "url":
		ok, expected = WebURL(text), "an http or https URL"
	case "baseurl":
		ok, expected = BaseURL(text), "an http or https URL without a query"
	default:
		panic("config: unknown rule " + rule + " of " + f.name)
	}
	if ok {
		return ""
	}
	return f.name + " must be " + expected
}

// limitOf reads a limit of a rule in the type of its variable.
func limitOf(f field, text string) int64 {
	var limit int64
	var err error
	if f.value.Type() == reflect.TypeFor[time.Duration]() {
		var d time.Duration
		d, err = time.ParseDuration(text)
		limit = int64(d)
	} else {
		limit, err = strconv.ParseInt(text, 10, 64)
	}
	if err != nil {
		panic("config: wrong rule of " + f.name + ": " + err.Error())
	}
	return limit
}

func atLeast(limit string) string {
	if limit == "0" {
		return "must not be negative"
	}
	return "must be at least " + limit
}

// list returns "a, b or c".
func list(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
