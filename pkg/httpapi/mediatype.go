package httpapi

import (
	"mime"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
)

const mediaTypeJSON = "application/json"

// checkMediaType accepts application/json, in any case and with parameters (RFC 9110, 8.3.1), without a content coding.
// It accepts a request with neither type nor body: the error about the empty body is more helpful.
func checkMediaType(req *http.Request) error {
	if len(req.Header[echo.HeaderContentEncoding]) != 0 &&
		!strings.EqualFold(req.Header.Get(echo.HeaderContentEncoding), "identity") {
		return apperr.UnsupportedMediaType.WithMessage("Content-Encoding is not supported.")
	}
	values := req.Header[echo.HeaderContentType]
	switch {
	case len(values) == 1 && values[0] == mediaTypeJSON:
		return nil
	case len(values) == 0 && req.ContentLength == 0:
		return nil
	case len(values) != 1:
		return unsupportedMediaType()
	}
	mediaType, _, err := mime.ParseMediaType(values[0])
	if err != nil || mediaType != mediaTypeJSON {
		return unsupportedMediaType()
	}
	return nil
}

func unsupportedMediaType() *apperr.Error {
	return apperr.UnsupportedMediaType.New()
}
