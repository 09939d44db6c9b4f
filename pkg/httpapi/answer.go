package httpapi

import "github.com/labstack/echo/v4"

// contentTypeJSON is shared by all responses and never modified.
var contentTypeJSON = []string{mediaTypeJSON}

// JSON sends body, which is encoded JSON. It is Echo's JSONBlob without the header name lookups.
func JSON(c echo.Context, status int, body []byte) error {
	response := c.Response()
	response.Header()[echo.HeaderContentType] = contentTypeJSON
	response.WriteHeader(status)
	_, err := response.Write(body)
	return err
}
