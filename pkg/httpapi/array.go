package httpapi

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"
)

// arrayChunk is the size of the buffer of [WriteArray].
const arrayChunk = 32 << 10

// WriteArray answers with a JSON array of n elements; appendElement appends one. It sends them in chunks, so
// that a long answer is not in memory beside its records.
func WriteArray(c echo.Context, n int, appendElement func(to []byte, i int) []byte) error {
	response := c.Response()
	response.Header()[echo.HeaderContentType] = contentTypeJSON
	chunk, sent := append(make([]byte, 0, min(arrayChunk, 512*n+2)), '['), false
	for i := range n {
		if i > 0 {
			chunk = append(chunk, ',')
		}
		chunk = appendElement(chunk, i)
		if len(chunk) < arrayChunk {
			continue
		}
		sent = true
		if _, err := response.Write(chunk); err != nil {
			return fmt.Errorf("sending an array: %w", err)
		}
		chunk = chunk[:0]
	}
	chunk = append(chunk, ']')
	if !sent { // all of it: no chunked encoding needed
		response.Header().Set(echo.HeaderContentLength, strconv.Itoa(len(chunk)))
		response.WriteHeader(http.StatusOK)
	}
	if _, err := response.Write(chunk); err != nil {
		return fmt.Errorf("sending an array: %w", err)
	}
	return nil
}
