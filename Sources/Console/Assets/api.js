// API calls with the browser's login.

import { t } from './i18n.js';

const base = '/api/v1';
const ranks = { backend: 0, ops: 1, admin: 2 };

/** The login: {role, name, isLimited, csrf, expiresAt, version, rtmp: where devices push}; null without one. */
export let session = null;
const watchers = new Set();

/** `watch` is called when somebody logs in or out. */
export function onSession(watch) { watchers.add(watch); }

/** When the server last answered. `outageSince` has that time during an outage, otherwise null. */
let lastAnswer = new Date();
let outageSince = null;
const outageWatchers = new Set();
const patienceMs = 15000;

/** Whether the page says that the server does not answer. */
export const isAway = () => outageSince !== null;

/** Calls `watch` with the time of the last answer when the server stops answering, and with null when it answers again. */
export function onOutage(watch) { outageWatchers.add(watch); }

function heard(isThere) {
  if (isThere) lastAnswer = new Date();
  if (isThere === (outageSince === null)) return;
  outageSince = isThere ? null : lastAnswer.toISOString();
  for (const watch of outageWatchers) watch(outageSince);
}

/** Like fetch. A read that is not answered in time fails; changes may take longer. */
async function reach(address, options) {
  const isRead = (options.method ?? 'GET') === 'GET';
  try {
    const answer = await fetch(address, isRead ? { signal: AbortSignal.timeout(patienceMs), ...options } : options);
    // A proxy's status when the server behind it is down.
    heard(answer.status !== 502 && answer.status !== 504);
    return answer;
  } catch (error) {
    if (error instanceof TypeError || error.name === 'TimeoutError') heard(false);
    throw error;
  }
}

function setSession(next) {
  session = next;
  for (const watch of watchers) watch(next);
}

export class ApiError extends Error {
  constructor(status, body) {
    super(body?.message || `HTTP ${status}`);
    this.status = status;
    this.details = body?.error ?? {};
  }
}

/** The least role that a page needs for a call. A back end's calls for its own rooms alone are offered from ops on: a page cannot tell whose a room is. */
const roleFor = (right) => (right.endsWith('+') ? 'ops' : right.replace('*', ''));

/** Whether the login permits a call. `right`: the call's entry in rights.js. */
export function may(right) { return session !== null && ranks[session.role] >= ranks[roleFor(right)] && !(session.isLimited && right.endsWith('*')); }

/** The reason why the login does not permit it. */
export const whyNot = (right) => (ranks[session.role] >= ranks[roleFor(right)] ? t('This concerns the whole server; the token is limited to some of its apps or rooms.') : t('This needs the role {role}.', { role: roleFor(right) }));

async function exchange(method, path, body, headers = {}) {
  const options = { method, headers: { Accept: 'application/json', ...headers }, credentials: 'same-origin', cache: 'no-store' };
  if (session) options.headers['X-Csrf-Token'] = session.csrf;
  if (body !== undefined) {
    options.headers['Content-Type'] = 'application/json';
    options.body = JSON.stringify(body);
  }
  const answer = await reach(path, options);
  const data = await answer.json().catch(() => null);
  if (!answer.ok) throw new ApiError(answer.status, data);
  return data?.data;
}

/** The `data` of an answer. Throws ApiError, or TypeError when the server cannot be reached. */
export async function call(method, path, { query, body, key } = {}) {
  const text = new URLSearchParams(Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== '' && value !== null)).toString();
  try {
    return await exchange(method, base + path + (text ? `?${text}` : ''), body, key ? { 'Idempotency-Key': key } : {});
  } catch (error) {
    if (error.status === 401 && session) setSession(null);
    throw error;
  }
}

export const get = (path, query) => call('GET', path, { query });
/** Makes a change, which is carried out once even when it is sent again. */
export const post = (path, body = {}) => call('POST', path, { body, key: crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}` });
export const patch = (path, body) => call('PATCH', path, { body });
export const remove = (path) => call('DELETE', path);
/** Loads a file, such as a picture. */
export async function load(path, query) {
  const answer = await reach(url(path, query), { headers: { 'X-Csrf-Token': session.csrf }, credentials: 'same-origin' });
  if (!answer.ok) throw new ApiError(answer.status, await answer.json().catch(() => null));
  return answer.blob();
}

/** The URL of something that the browser loads itself, such as a picture. */
export const url = (path, query) => base + path + (query ? `?${new URLSearchParams(query)}` : '');

// The server prolongs a login that has used half of its time. A page that comes back from sleep asks at once.
const renewalMs = 3600_000;
const prolong = () => { if (session) exchange('POST', '/console/session', {}).catch(() => {}); };
setInterval(prolong, renewalMs);
document.addEventListener('visibilitychange', () => { if (!document.hidden) prolong(); });

/** Looks for an existing login of this browser. */
export async function restore() {
  try {
    setSession(await exchange('GET', '/console/session'));
  } catch (error) {
    if (error.status !== 401 && error.status !== 403) throw error;
    setSession(null);
  }
}

/** Logs in. `credential`: {token} or {code}. */
export async function logIn(credential) { setSession(await exchange('POST', '/console/login', credential)); }

export async function logOut() {
  await exchange('POST', '/console/logout', {});
  setSession(null);
}
