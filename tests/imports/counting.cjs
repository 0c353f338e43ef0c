// Loaded before the Node runner: counts the keys that crypto.sign and crypto.verify are handed ready, and all others,
// which Node imports in that call. Says so on standard error at the end.
const crypto = require("node:crypto");

const counts = { imports: 0, ready: 0 };
for (const name of ["sign", "verify"]) {
  const call = crypto[name];
  crypto[name] = (digest, data, key, ...rest) => {
    counts[key instanceof crypto.KeyObject ? "ready" : "imports"] += 1;
    return call(digest, data, key, ...rest);
  };
}
process.on("exit", () => console.error(JSON.stringify(counts)));
