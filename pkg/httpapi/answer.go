package httpapi

import "github.com/labstack/echo/v4"

// contentTypeJSON is shared by the answers and never changed.
var contentTypeJSON = []string{mediaTypeJSON}

// JSON answers with body, which is JSON already. It is Echo's JSONBlob without the look-ups of header names.
func JSON(c echo.Context, status int, body []byte) error {
	response := c.Response()
	response.Header()[echo.HeaderContentType] = contentTypeJSON
	response.WriteHeader(status)
	_, err := response.Write(body)
	return err
}
