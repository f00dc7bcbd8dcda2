import type { Invited } from "./link.ts";

/** This browser's identity at the service, for one invitation. The private key cannot be extracted. */
export interface Identity {
  udid: string;
  userId: string;
  keys: CryptoKeyPair;
}

const DATABASE = "visitor-pass";
const STORE = "identities";
const RANDOM_BYTES = 16;

/** Whether the browser has what a pass needs. `keepIdentity` finds out whether it keeps keys. */
export const isSuitable = (): boolean => isSecureContext && "indexedDB" in globalThis && "subtle" in crypto;

/** The identity for an invitation; null if this browser has not claimed it. */
export async function findIdentity(invited: Invited): Promise<Identity | null> {
  const key = await keyOf(invited);
  return inStore("readonly", (store) => store.get(key), readIdentity);
}

/**
 * Creates an identity and stores it. If two tabs do this at once, both get the first one's, because one transaction reads and
 * adds.
 *
 * @param userId the user that the invitation names; default: a new one
 * @throws DOMException if the browser stores nothing, as in some private windows
 */
export async function keepIdentity(invited: Invited, userId = `visitor-${randomHex()}`): Promise<Identity> {
  const algorithm = { name: "ECDSA", namedCurve: "P-256" };
  const keys = await crypto.subtle.generateKey(algorithm, false, ["sign"]);
  const made: Identity = { udid: `pass-${randomHex()}`, userId, keys };
  const key = await keyOf(invited);
  await inStore("readwrite", (store) => {
    const found = store.get(key);
    found.onsuccess = () => {
      try {
        if (found.result === undefined) store.add(made, key);
      } catch {
        // Some browsers keep no keys in a private window (DataCloneError).
        store.transaction.abort();
      }
    };
    return found;
  });
  const kept = await findIdentity(invited);
  if (kept === null) throw new DOMException("the browser kept nothing", "DataError");
  return kept;
}

/** The token itself is not stored. */
async function keyOf({ applicationId, token }: Invited): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(token));
  return `${applicationId}/${hexOf(new Uint8Array(digest))}`;
}

function readIdentity(kept: unknown): Identity | null {
  if (typeof kept !== "object" || kept === null || !("udid" in kept && "userId" in kept && "keys" in kept)) return null;
  const { udid, userId, keys } = kept;
  if (typeof udid !== "string" || typeof userId !== "string" || typeof keys !== "object" || keys === null) return null;
  if (!("publicKey" in keys && "privateKey" in keys)) return null;
  const { publicKey, privateKey } = keys;
  const isPair = publicKey instanceof CryptoKey && privateKey instanceof CryptoKey;
  return isPair ? { udid, userId, keys: { publicKey, privateKey } } : null;
}

/** Works on the store in one transaction, which is complete when this resolves. */
async function inStore(mode: IDBTransactionMode, work: (store: IDBObjectStore) => IDBRequest): Promise<void>;
async function inStore<T>(
  mode: IDBTransactionMode,
  work: (store: IDBObjectStore) => IDBRequest,
  read: (result: unknown) => T,
): Promise<T>;
async function inStore<T>(
  mode: IDBTransactionMode,
  work: (store: IDBObjectStore) => IDBRequest,
  read?: (result: unknown) => T,
): Promise<T | undefined> {
  const database = await openDatabase();
  try {
    return await new Promise((resolve, reject) => {
      const transaction = database.transaction(STORE, mode);
      const request = work(transaction.objectStore(STORE));
      transaction.oncomplete = () => resolve(read?.(request.result));
      transaction.onerror = () => reject(transaction.error);
      transaction.onabort = () =>
        reject(transaction.error ?? new DOMException("the browser keeps no keys", "AbortError"));
    });
  } finally {
    database.close();
  }
}

function openDatabase(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

const randomHex = (): string => hexOf(crypto.getRandomValues(new Uint8Array(RANDOM_BYTES)));

const hexOf = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
