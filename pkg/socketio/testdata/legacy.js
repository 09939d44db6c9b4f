// Connects with the official client of version 2, which this server does not support, and prints the resulting error.
const io = require("socket.io-client-v2");
const socket = io(process.argv[2], { transports: ["polling"], reconnection: false });
socket.on("connect", () => { console.log("connected"); process.exit(1); });
socket.on("connect_error", (err) => { console.log(err.type, err.description); process.exit(0); });
setTimeout(() => process.exit(2), 20000);
