// Package pdf reads the text of PDF files, which strangers may have made.
//
// PDFium does the reading, as WebAssembly: it sees the bytes of the file and nothing else, not a file system, and neither
// its memory nor its time exceeds what this package allows. markdown.go turns the text of its pages into Markdown.
package pdf

import (
	"context"
	"errors"
	"io"
	"runtime/debug"
	"time"

	"github.com/klippa-app/go-pdfium"
	pdfiumerrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/knowledge"
)

const (
	// MaxBytes bounds a file.
	MaxBytes = 10 << 20
	// maxPages bounds the pages of a file: their text would be too long for a document long before.
	maxPages = 2000
	// longest bounds a conversion. One of two pages takes half a second.
	longest = 30 * time.Second
	// memoryPages bounds the memory of PDFium, in pages of WebAssembly of 64 KiB: 96 MiB, for the file and what is read of
	// it. The runtime around it takes some 150 MB more.
	memoryPages = 96 << 20 / (64 << 10)
)

// turn has a place for the conversion of this process: two at once would take twice the memory.
var turn = make(chan struct{}, 1)

// Text returns the text of a PDF file as Markdown, with a heading "Page N" above each page that has some. One
// conversion runs at a time in a process; others wait, as long as ctx allows. Its errors are those of ctx, and
// Invalid with the reasons PDF_TOO_LARGE, PDF_UNREADABLE, PDF_ENCRYPTED, PDF_WITHOUT_TEXT and PDF_TOO_SLOW. It is safe
// for concurrent use.
func Text(ctx context.Context, data []byte) (string, error) { return textWithin(ctx, data, longest) }

func textWithin(ctx context.Context, data []byte, atMost time.Duration) (string, error) {
	if len(data) > MaxBytes {
		return "", apperr.PDFTooLarge.New()
	}
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer debug.FreeOSMemory() // else the next conversion comes on top of what this one has left
	limited, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	text, err := convert(limited, data)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case limited.Err() != nil:
		return "", apperr.PDFTooSlow.Wrap(err)
	}
	return text, err
}

// convert starts PDFium, reads all pages, and gives its memory back.
func convert(ctx context.Context, data []byte) (string, error) {
	pool, err := webassembly.Init(webassembly.Config{
		Context:       ctx,
		MaxIdle:       1,
		MaxTotal:      1,
		RuntimeConfig: runtimeConfig(),
		FSConfig:      wazero.NewFSConfig(), // empty; without it, PDFium could open the files of this process
		Stdout:        io.Discard,
		Stderr:        io.Discard,
	})
	if err != nil {
		return "", err
	}
	defer func() { _ = pool.Close() }() // with its instance; there is nothing to lose
	instance, err := pool.GetInstanceWithContext(ctx)
	if err != nil {
		return "", err
	}
	opened, err := instance.OpenDocument(&requests.OpenDocument{File: &data})
	if err != nil {
		return "", unreadable(err)
	}
	return read(instance, opened.Document)
}

// runtimeConfig chooses the interpreter: to compile PDFium takes longer than to read most files, and more memory.
func runtimeConfig() wazero.RuntimeConfig {
	return wazero.NewRuntimeConfigInterpreter().
		WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling).
		WithCloseOnContextDone(true).
		WithMemoryLimitPages(memoryPages)
}

// read returns the text of all pages.
func read(instance pdfium.Pdfium, document references.FPDF_DOCUMENT) (string, error) {
	count, err := instance.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: document})
	if err != nil {
		return "", unreadable(err)
	}
	if count.PageCount > maxPages {
		return "", apperr.PDFTooLarge.New()
	}
	var m markdown
	for index := range count.PageCount {
		page := requests.Page{ByIndex: &requests.PageByIndex{Document: document, Index: index}}
		found, err := instance.GetPageText(&requests.GetPageText{Page: page})
		if err != nil {
			return "", unreadable(err)
		}
		m.page(index+1, found.Text)
		if m.out.Len() > knowledge.MaxText {
			return "", apperr.PDFTooLarge.New()
		}
	}
	if m.out.Len() == 0 {
		return "", apperr.PDFWithoutText.New()
	}
	return m.out.String(), nil
}

// unreadable is the error of a file that PDFium does not read. It fails the same way if its memory is exhausted.
func unreadable(err error) error {
	if errors.Is(err, pdfiumerrors.ErrPassword) || errors.Is(err, pdfiumerrors.ErrSecurity) {
		return apperr.PDFEncrypted.Wrap(err)
	}
	return apperr.PDFUnreadable.Wrap(err)
}
