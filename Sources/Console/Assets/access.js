// API access: who may call the API, and what happened lately.
import { get, may, post, remove, session, url, whyNot } from './api.js';
import { coded, operations, results, tools } from './codes.js';
import { dim, h, head, KeyedList, options, panel, show, stack } from './dom.js';
import { Feed } from './feed.js';
import { count, none, time } from './format.js';
import { t } from './i18n.js';
import { rights } from './rights.js';
import { ask, button, dangerous, every, fail, inform, roomLink, secretLine, soon, table } from './ui.js';
import { eventLine } from './words.js';

export function tokensPage() {
  const list = panel();
  const element = stack(head(t('Tokens'), may(rights.createToken) && button(t('New token'), create)), list);
  if (!may(rights.listTokens)) {
    show(list, whyNot(rights.listTokens));
    return { element, title: t('Tokens') };
  }
  async function load() {
    const tokens = (await get('/tokens')).list;
    const reach = (token) => [token.apps.length > 0 && t('apps {names}', { names: token.apps.join(', ') }), token.rooms.length > 0 && t('rooms {names}', { names: token.rooms.map((each) => `${each}…`).join(', ') })].filter(Boolean).join(' · ');
    show(list, table('', [t('Name'), t('Role'), t('Limited to'), t('Created'), ''], tokens.map((token) => [token.name, token.role, reach(token) || none, time(token.createdAt), token.revokedAt
      ? `${t('revoked')} ${time(token.revokedAt)}`
      : may(rights.revokeToken) && dangerous(t('Revoke'), token.name, whatIsLost(token, tokens), () => remove(`/tokens/${token.tokenId}`), t('Revoked.'), load)])));
  }
  async function create() {
    let made;
    const fields = [{ name: 'name', label: t('Name'), required: true, length: 64 }, { name: 'role', label: t('Role'), options: [['backend', t('backend: rooms, addresses, talk')], ['ops', t('ops: also streams, viewers, recordings')], ['admin', t('admin: everything')]] },
      { name: 'apps', label: t('Only these apps'), help: t('An app is the first part of the RTMP path, such as live. Empty: all.'), isList: true }, { name: 'rooms', label: t('Only rooms that begin with'), help: t('Beginnings of room ids, such as shop-a-. Empty: all.'), isList: true }];
    if (await ask(t('New token'), '', fields, async ({ apps, rooms, ...values }) => {
      made = await post('/tokens', { ...values, ...(apps.length && { apps }), ...(rooms.length && { rooms }) });
    }, { verb: t('Create') })) {
      inform(made.name, h('p', null, t('This secret is shown once: {secret}', { secret: '' }), ' ', t('It is the token: programs send it with each call.')), secretLine(made.secret));
      await load();
    }
  }
  const stop = every(30000, load);
  return { element, title: t('Tokens'), stop };
}

/** What the revocation of a token means for whoever is asked. */
function whatIsLost(token, tokens) {
  const isChief = (each) => each.role === 'admin' && !each.revokedAt && !each.apps.length && !each.rooms.length;
  const isLast = isChief(token) && tokens.filter(isChief).length === 1;
  return [
    t('Revoke this token? Whoever uses it is locked out at once.'),
    token.tokenId === session.tokenId && t('You are logged in with this token: this page is logged out at once.'),
    isLast && t('It is the last token for everything: without it nobody can make tokens, change webhooks or end the server by calls, and the console lets no administrator in. Make another one first, or one with the command earshot token create on the server.'),
  ].filter(Boolean).join(' ');
}

// The most that one call answers.
const fileLines = 10_000;

/** The audit trail, newest first. */
export function auditPage() {
  const list = panel();
  const element = stack(h('h1', null, t('Audit')), list);
  if (!may(rights.listAudit)) {
    show(list, whyNot(rights.listAudit));
    return { element, title: t('Audit') };
  }
  let lines = [];
  let next = null;
  const told = (value) => (typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value) ? time(value) : value === null || value === undefined ? none : JSON.stringify(value));
  const changes = (line) => [...new Set([...Object.keys(line.before ?? {}), ...Object.keys(line.after ?? {})])].map((name) => (line.after
    ? `${name}: ${told(line.before?.[name])} → ${told(line.after[name])}` : `${name}: ${told(line.before[name])}`)).join(', ');
  const what = (line) => (operations[line.operation] ? coded(t(operations[line.operation]), line.operation) : h('code', null, line.operation));

  const who = h('input', { name: 'token', autocomplete: 'off', maxlength: 64 });
  const choice = (name, pairs) => h('select', { name }, options([['', t('Everything')], ...pairs]));
  const translated = (words) => Object.entries(words).map(([code, text]) => [code, t(text)]);
  const tool = choice('via', translated(tools));
  const room = h('input', { name: 'roomId', autocomplete: 'off', maxlength: 64 });
  const operation = choice('operation', translated(operations).sort(([, one], [, other]) => one.localeCompare(other)).map(([code, words]) => [code, `${words} (${code})`]));
  const result = choice('result', translated(results));
  const day = h('select', { name: 'from' }, options([['', t('At any time')], ['1', t('Last hour')], ['24', t('Last day')], ['168', t('Last week')]]));
  const chosen = () => ({ token: who.value.trim(), via: tool.value, roomId: room.value.trim(), operation: operation.value, result: result.value,
    from: day.value && new Date(Date.now() - Number(day.value) * 3600_000).toISOString() });
  const csv = h('a', { class: 'button', download: 'audit.csv', 'aria-describedby': 'csv-extent' }, t('Download as CSV'));
  const extent = h('span', { class: 'dim', id: 'csv-extent' }, t('The file holds the newest {n} lines that match the filters.', { n: count(fileLines) }));
  const filters = h('form', { class: 'filters', onsubmit: (event) => event.preventDefault() },
    [[t('Who'), who], [t('By means of'), tool], [t('Room'), room], [t('What'), operation], [t('Result'), result], [t('Time'), day]].map(([label, input]) => h('label', null, label, input)), csv, extent);
  filters.addEventListener('input', soon(() => load().catch(fail)));

  function draw() {
    csv.href = url('/audit', Object.entries({ ...chosen(), format: 'csv', limit: fileLines }).filter(([, value]) => value));
    show(list, lines.length ? table('', [t('Time'), t('Who'), t('By means of'), t('Address'), t('What'), t('On'), t('Result'), t('Changes')], lines.map((line) => [
      time(line.at), line.token ?? line.tokenHash, h('span', { class: 'whole' }, tools[line.via] ? t(tools[line.via]) : none), line.address, what(line),
      line.roomId ? roomLink(line.roomId) : line.stream ?? line.object,
      h('span', { class: line.result !== 'ok' && 'error' }, t(results[line.result] ?? line.result)), changes(line)])) : dim(t('No line fits.')),
    next && button(t('Load more'), async () => { const page = await get('/audit', { ...chosen(), before: next, limit: 100 }); lines = lines.concat(page.list); next = page.next; draw(); }));
  }
  async function load() {
    const page = await get('/audit', { ...chosen(), limit: 100 });
    lines = page.list;
    next = page.next;
    draw();
  }
  show(element, head(t('Audit')), filters, list);
  // Not while somebody reads further down.
  const stop = every(60000, () => (lines.length > 100 ? null : load()));
  return { element, title: t('Audit'), stop };
}

/** The newest events of all rooms, as they happen. */
export function eventsPage() {
  const list = h('ol', { class: 'timeline' });
  list.style.maxHeight = 'none';
  const element = stack(h('h1', null, t('Events')), panel(list));
  const events = [];
  const rows = new KeyedList(list, (event) => event.id, (event) => ({ update() {},
    element: eventLine(event, event.roomId && roomLink(event.roomId)) }));
  const draw = soon(() => rows.update(events.slice(-300).reverse()));
  const add = (event) => {
    if (events.some((each) => each.id === event.id)) return;
    events.push(event);
    if (events.length > 600) events.splice(0, events.length - 300);
  };
  const feed = new Feed({ handle: async (message) => {
    if (message.type === 'hello' && !events.length) {
      const data = await get('/events', { after: Math.max(0, message.lastEventId - 200), limit: 200 });
      data.list.forEach(add);
      draw();
    }
    if (message.type === 'event') { add(message); draw(); }
  } });
  return { element, title: t('Events'), stop() { feed.stop(); draw.stop(); } };
}
