package processor

import (
	"io/fs"

	"github.com/parley-chat/parley/services/processor/internal/bot"
)

// DemoAssetsPath is the path under which a web server is to serve [DemoAssets]; Config.AssetsURL is that server's address.
const DemoAssetsPath = bot.AssetsPath

// DemoAssets holds the files that the demo bot's messages point at (parley.png).
func DemoAssets() fs.FS { return bot.Assets() }
