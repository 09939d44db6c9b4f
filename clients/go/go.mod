module github.com/parley-chat/parley/clients/go

go 1.26.0
