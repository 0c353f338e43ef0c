// What `node:crypto` performs: each family's choices as functions that do one operation and return a byte of its answer.

import crypto from "node:crypto";

import { Proof, Refusal, tampered, tamperedAtEnd } from "./task.mjs";

const OF_FAMILY = {
  "rsa-api": {
    ops: ["sign", "verify"],
    choices: ["key-cached", "key-from-pem", "key-from-der", "key-from-parameters", "key-from-store", "key-pooled"],
    settings: (task) => ({ bytes: task.bytes(60), digest: task.word("digest", ["fetched", "implicit"]) }),
    prepare: rsa,
  },
  signature: {
    ops: ["sign", "verify"],
    choices: ["ecdsa-p256"],
    settings: (task) => ({
      bytes: task.bytes(32),
      digest: HASHES[task.word("digest", Object.keys(HASHES))],
      key: task.word("key", ["kept", "from-pem", "from-der"]),
      cpu: task.word("cpu", PROCESSORS),
    }),
    prepare: ecdsa,
  },
  digest: {
    ops: ["hash"],
    choices: ["sha-256"],
    settings: (task) => ({
      bytes: task.bytes(4096),
      lookup: task.word("lookup", ["fetched", "implicit"]),
      cpu: task.word("cpu", PROCESSORS),
    }),
    prepare: sha256,
  },
  cipher: {
    ops: ["encrypt", "decrypt"],
    choices: ["aes-256-gcm"],
    settings: (task) => ({
      bytes: task.bytes(4096),
      key: task.word("key", ["kept", "fresh"]),
      cpu: task.word("cpu", PROCESSORS),
    }),
    prepare: aesGcm,
  },
};

// The settings' names of hashes, and Node's.
const HASHES = { "sha-256": "sha256", "sha-384": "sha384", "sha-512": "sha512" };
const PROCESSORS = ["native", "no-sha", "no-aes", "no-vector"];


const NO_STORE = "node:crypto has no certificate store that holds private keys: it takes PEM, DER, JWK or a KeyObject";
const NO_DIGEST_OBJECT =
  "node:crypto takes the digest of a signature by its name only: crypto.sign('sha256', …) looks it up in each call";
const NO_PROCESSOR = "node:crypto has no way to leave processor features unused";
const NO_KEPT_KEY =
  "node:crypto has no cipher that takes a new nonce: crypto.createCipheriv sets its key up anew for each message";

/** What `list` says is here. A null choice each, and what is `unsupported` is left out. */
export const OFFERS = Object.entries(OF_FAMILY).flatMap(([family, { choices }]) =>
  ["none", ...choices.filter((choice) => choice !== "key-from-store")].map((choice) => ({ family, choice })),
);

/** Returns the operation of a task: {perform(), prove()}. */
export function prepare(task) {
  const family = OF_FAMILY[task.family];
  if (family === undefined) throw new Refusal("unsupported", `this runner does not support the family ${task.family}`);
  if (!family.ops.includes(task.op)) {
    throw new Refusal("unsupported", `this runner does not support ${task.op} (${task.family}): ${family.ops.join(", ")}`);
  }
  if (task.choice !== "none" && !family.choices.includes(task.choice)) {
    throw new Refusal("unsupported", `this runner does not support ${task.choice} (${task.family})`);
  }
  const settings = family.settings(task);
  task.allSettingsRead();
  if (task.choice === "none") return nothing();
  // OpenSSL reads OPENSSL_ia32cap when it is loaded, before any of this program runs.
  if ((settings.cpu ?? "native") !== "native") throw new Refusal("unsupported", NO_PROCESSOR);
  return family.prepare(task, settings);
}

/** Null choice: the same loop and clocks without work. */
function nothing() {
  const proof = new Proof();
  proof.accepted.push("the empty operation");
  proof.leave("a wrong input", "the null choice reads none");
  return { perform: () => 0, prove: () => proof };
}

// --- Signatures ---------------------------------------------------------------------------------------------------

/**
 * The ways to hand a key to crypto.sign and crypto.verify. Each gets a KeyObject once, and returns what is called for
 * each operation: a KeyObject goes in ready; all else is what Node imports in the call that it is handed to.
 */
const ROUTES = {
  kept: (key) => () => key,
  "from-pem": (key) => {
    const pem = key.export({ format: "pem", type: encoding(key) });
    return () => pem;
  },
  "from-der": (key) => {
    const type = encoding(key);
    const der = key.export({ format: "der", type });
    return () => ({ key: der, format: "der", type });
  },
  "from-parameters": (key) => {
    const jwk = key.export({ format: "jwk" });
    return () => ({ key: jwk, format: "jwk" });
  },
  pooled: (key) => {
    // One key for each worker of a server, each imported separately.
    const exported = { key: key.export({ format: "der", type: encoding(key) }), format: "der", type: encoding(key) };
    const make = key.type === "private" ? crypto.createPrivateKey : crypto.createPublicKey;
    const pool = Array.from({ length: 8 }, () => make(exported));
    return () => {
      const taken = pool.shift();
      // Given back before the call and not after: one thread performs, so no other can take it meanwhile.
      pool.push(taken);
      return taken;
    };
  },
};

function encoding(key) {
  return key.type === "private" ? "pkcs8" : "spki";
}

function rsa(task, { bytes, digest }) {
  if (task.choice === "key-from-store") throw new Refusal("unsupported", NO_STORE);
  if (digest === "fetched") throw new Refusal("unsupported", NO_DIGEST_OBJECT);
  const route = task.choice === "key-cached" ? "kept" : task.choice.replace("key-", "");
  const known = task.known();
  const operation = signing(task, bytes, { digest: "sha256", route: ROUTES[route], key: ownKey(task), another: rsaKey });
  return {
    perform: operation.perform,
    prove() {
      const proof = operation.prove();
      const { sign, verify, message, right } = operation;
      proof.accept("the same message again", right.equals(sign(message)));
      const padding = crypto.constants.RSA_PKCS1_PSS_PADDING;
      const pss = crypto.sign("sha256", message, { key: ownKey(task), padding });
      proof.refuse("another padding (PSS)", !verify(message, pss));
      if (known !== undefined) {
        const answer = sign(known);
        proof.accept("the known answer, verified", verify(known, answer));
        proof.answer = answer.toString("hex");
      }
      return proof;
    },
  };
}

function ownKey(task) {
  if (task.inputs.private_key_pem === undefined) throw new Refusal("failed", "the input private_key_pem is missing");
  return crypto.createPrivateKey(task.inputs.private_key_pem);
}

function rsaKey() {
  return crypto.generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
}

function ecdsaKey() {
  return crypto.generateKeyPairSync("ec", { namedCurve: "prime256v1" }).privateKey;
}

function ecdsa(task, { bytes, digest, key: route }) {
  const known = task.known();
  const key = task.inputs.private_key_pem === undefined ? ecdsaKey() : ownKey(task);
  const operation = signing(task, bytes, { digest, route: ROUTES[route], key, another: ecdsaKey });
  return {
    perform: operation.perform,
    prove() {
      const proof = operation.prove();
      if (known !== undefined) proof.answer = publishedSignature(task, known, { digest, route: ROUTES[route] });
      // Signing is randomised, so another implementation verifies a signature made here.
      const message = task.inputs.of ?? "tollbar";
      proof.made = {
        of: message,
        signature_hex: operation.sign(Buffer.from(message)).toString("hex"),
        public_key_der_hex: crypto.createPublicKey(key).export({ format: "der", type: "spki" }).toString("hex"),
      };
      return proof;
    },
  };
}

/** Returns a published signature that the timed route accepted under its own key; undefined if inputs are missing. */
function publishedSignature(task, message, { digest, route }) {
  const [der, signature] = [task.hex("public_key_der"), task.hex("expected")];
  if (der === undefined || signature === undefined) return undefined;
  const key = route(crypto.createPublicKey({ key: der, format: "der", type: "spki" }));
  if (!crypto.verify(digest, message, key(), signature)) {
    throw new Refusal("failed", "the library refused the published signature");
  }
  return signature.toString("hex");
}

/** `sign` or `verify` with a key that comes by this route, for keys of both kinds. */
function signing(task, bytes, { digest, route, key, another }) {
  const message = task.filled(bytes);
  const [privateRoute, publicRoute] = [route(key), route(crypto.createPublicKey(key))];
  const sign = (data) => crypto.sign(digest, data, privateRoute());
  const verify = (data, signature) => crypto.verify(digest, data, publicRoute(), signature);
  const right = sign(message);
  const perform = {
    sign: () => {
      const made = sign(message);
      return made[made.length - 1];
    },
    verify: () => {
      if (!verify(message, right)) throw new Refusal("failed", "the library refused a valid signature");
      return 1;
    },
  }[task.op];
  const prove = () => {
    const proof = new Proof();
    proof.accept("its own signature", verify(message, right));
    proof.refuse("a tampered message", !verify(tampered(message), right));
    proof.refuse("a tampered signature", !verify(message, tamperedAtEnd(right)));
    const stranger = crypto.createPublicKey(another());
    proof.refuse("another key", !crypto.verify(digest, message, stranger, right));
    return proof;
  };
  return { perform, prove, sign, verify, message, right };
}

// --- Digests ------------------------------------------------------------------------------------------------------

function sha256(task, { bytes, lookup }) {
  const data = task.filled(bytes);
  // Node's only digest object made beforehand: a Hash that nothing was put into, copied for each message.
  const fresh = crypto.createHash("sha256");
  // The whole message in one call, where this Node has that (20.12, 21.7).
  const byName = crypto.hash
    ? (message) => crypto.hash("sha256", message, "buffer")
    : (message) => crypto.createHash("sha256").update(message).digest();
  const hash = lookup === "fetched" ? (message) => fresh.copy().update(message).digest() : byName;
  const known = task.known();
  return {
    perform: () => hash(data)[0],
    prove() {
      const proof = new Proof();
      if (known !== undefined) proof.answer = hash(known).toString("hex");
      const right = hash(data);
      proof.accept("the same message again", right.equals(hash(data)));
      proof.refuse("a tampered message", !right.equals(hash(tampered(data))));
      return proof;
    },
  };
}

// --- Ciphers ------------------------------------------------------------------------------------------------------

const GCM = "aes-256-gcm";
const TAG_BYTES = 16;

/** Ciphertext with its tag. */
function seal(key, nonce, plain, aad) {
  const cipher = crypto.createCipheriv(GCM, key, nonce);
  if (aad !== undefined) cipher.setAAD(aad);
  return [cipher.update(plain), cipher.final(), cipher.getAuthTag()];
}

/** The plaintext; throws where the tag is wrong. */
function open(key, nonce, sealed, tag, aad) {
  const decipher = crypto.createDecipheriv(GCM, key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAuthTag(tag);
  if (aad !== undefined) decipher.setAAD(aad);
  const plain = decipher.update(sealed);
  decipher.final();
  return plain;
}

function aesGcm(task, { bytes, key: setup }) {
  const plain = task.filled(bytes);
  if (setup === "kept") throw new Refusal("unsupported", NO_KEPT_KEY);
  const key = task.filled(32, 0xffffffffffffffffn);
  const nonce = task.filled(12, 0x1234567890abcdefn);
  const firstNonce = Buffer.from(nonce);
  const [sealed, , tag] = seal(key, nonce, plain);
  const perform = {
    encrypt: () => {
      increment(nonce);
      const [made, , tagMade] = seal(key, nonce, plain);
      if (made.length !== plain.length) throw new Refusal("failed", `the ciphertext has ${made.length} bytes instead of ${plain.length}`);
      return tagMade[0];
    },
    decrypt: () => {
      const opened = open(key, firstNonce, sealed, tag);
      if (opened.length !== plain.length) throw new Refusal("failed", `the plaintext has ${opened.length} bytes instead of ${plain.length}`);
      return opened.length;
    },
  }[task.op];
  const known = task.known();
  return { perform, prove: () => proveGcm(task, known, { key, nonce: firstNonce, plain, sealed, tag }) };
}

function proveGcm(task, known, { key, nonce, plain, sealed, tag }) {
  const proof = new Proof();
  if (known !== undefined) {
    const [ofKey, ofNonce, aad] = [task.hex("key"), task.hex("iv"), task.hex("aad")];
    const [made, , madeTag] = seal(ofKey, ofNonce, known, aad);
    proof.accept("the known answer, decrypted", open(ofKey, ofNonce, made, madeTag, aad).equals(known));
    proof.answer = Buffer.concat([made, madeTag]).toString("hex");
  }
  const isRefused = (...wrong) => {
    try {
      open(...wrong);
      return false;
    } catch {
      return true;
    }
  };
  const otherNonce = tampered(nonce);
  proof.accept("its own ciphertext", open(key, nonce, sealed, tag).equals(plain));
  proof.refuse("the same tag twice", !seal(key, otherNonce, plain)[2].equals(tag));
  if (sealed.length > 0) proof.refuse("a tampered ciphertext", isRefused(key, nonce, tampered(sealed), tag));
  proof.refuse("another key", isRefused(tampered(key), nonce, sealed, tag));
  proof.refuse("another nonce", isRefused(key, otherNonce, sealed, tag));
  proof.refuse("a tampered tag", isRefused(key, nonce, sealed, tamperedAtEnd(tag)));
  return proof;
}

/** The next nonce: a counter in its last bytes. A nonce used twice reveals the plaintexts. */
function increment(nonce) {
  for (let at = nonce.length - 1; at >= 0; at--) {
    nonce[at] = (nonce[at] + 1) & 0xff;
    if (nonce[at] !== 0) break;
  }
}
