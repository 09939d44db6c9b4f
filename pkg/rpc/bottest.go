package rpc

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	// botTestTimeout leaves a processor time to say that a test has timed out.
	botTestTimeout = bots.MaxTestTime + subscribeTimeout
	processorGroup = "processor" // queue group of the processors
	processor      = "the processor"
)

// TestBot makes a processor ask settings of a bot a question, and returns the call, also one that has failed. It
// returns Unavailable if no processor with a bot runs.
func (c *Conn) TestBot(ctx context.Context, t bots.Test) (bots.Call, error) {
	body, err := json.Marshal(t)
	if err != nil {
		return bots.Call{}, fmt.Errorf("encoding a test of a bot: %w", err)
	}
	q := Question{Subject: subject.BotTest, Body: body, Service: processor, Timeout: botTestTimeout}
	return Ask[bots.Call](ctx, c, q)
}

// HandleBotTests responds to [Conn.TestBot] with the result of test until stop is called; stop waits for running calls.
func (c *Conn) HandleBotTests(test func(context.Context, bots.Test) (bots.Call, error)) (stop func(), err error) {
	answer := func(ctx context.Context, _ string, body []byte) (any, error) {
		var t bots.Test
		if err := json.Unmarshal(body, &t); err != nil {
			return nil, err
		}
		return test(ctx, t)
	}
	return c.answer(subject.BotTest, processorGroup, botTestTimeout, answer)
}

// ListTools makes a processor ask a server of a company for its tools. It returns Unavailable if no processor with a bot
// runs; a server that does not answer is no error.
func (c *Conn) ListTools(ctx context.Context, of bots.ToolsOf) (bots.ToolList, error) {
	body, err := json.Marshal(of)
	if err != nil {
		return bots.ToolList{}, fmt.Errorf("encoding a question for tools: %w", err)
	}
	q := Question{Subject: subject.BotTools, Body: body, Service: processor, Timeout: botTestTimeout}
	return Ask[bots.ToolList](ctx, c, q)
}

// HandleToolLists responds to [Conn.ListTools] until stop is called; stop waits for running calls.
func (c *Conn) HandleToolLists(list func(context.Context, bots.ToolsOf) (bots.ToolList, error)) (stop func(), err error) {
	answer := func(ctx context.Context, _ string, body []byte) (any, error) {
		var of bots.ToolsOf
		if err := json.Unmarshal(body, &of); err != nil {
			return nil, err
		}
		return list(ctx, of)
	}
	return c.answer(subject.BotTools, processorGroup, botTestTimeout, answer)
}
