// The wall of rooms: live pictures, states and problems.
import { get, load as loadFile, may, post, session } from './api.js';
import { reasonWords } from './codes.js';
import { h, head, KeyedList, options, setText, show } from './dom.js';
import { Feed } from './feed.js';
import { bits, clock, count, ms, since } from './format.js';
import { t } from './i18n.js';
import { rights } from './rights.js';
import { ask, button, every, stateBadge, verdictBadge } from './ui.js';
import { reasonText } from './reasons.js';
import { figures, figuresOfAll, isSoundOnly } from './figures.js';

// Rooms per page; the API gives no more than the last.
const pageSizes = ['24', '60', '200'];
const pictureSeconds = 10;
const picturesAtOnce = 3;
// Orders by figures that the store does not have. The list of streams is sorted by them instead.
const byFigures = ['viewers', 'verdict'];
const orders = ['-createdAt', 'createdAt', 'title', ...byFigures];
// The most rooms that a search sorts by figures, and ill streams that are counted.
const mostSorted = 200;
const mostIlls = 100;
// Every second turn of the wall counts them.
const illSeconds = 8;
const ills = { bad: (n) => t('{n} bad', { n }), degraded: (n) => t('{n} degraded', { n }) };
// A room from a list of streams is requested again after this time, or when an event reports a change.
const roomSeconds = 30;
const fewCalls = 24;
const picturesOf = (id) => loadFile(`/rooms/${encodeURIComponent(id)}/snapshot.jpg`, { width: 320, maxAge: pictureSeconds });
// The wall's initial filter.
const usual = 'live,interrupted';
const states = ['live', 'interrupted', 'created', 'forbidden', 'closed', 'expired'];

const tally = (live, cut) => [(live > 0 || !cut) && t('{n} live', { n: count(live) }), cut > 0 && t('{n} interrupted', { n: count(cut) })].filter(Boolean).join(' · ');
const viewersOf = (room) => room.streams.reduce((sum, slot) => sum + slot.viewers, 0);

/** Loads pictures of the tiles in view, a few at once, each every ten seconds. Calls `came` when others come into view. */
class Pictures {
  constructor(came) {
    this.tiles = new Set();
    this.seen = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        const tile = entry.target.tile;
        if (entry.isIntersecting) this.tiles.add(tile); else this.tiles.delete(tile);
      }
      this.next();
      if (entries.some((entry) => entry.isIntersecting)) came();
    }, { rootMargin: '100px' });
    this.timer = setInterval(() => this.next(), 500);
    this.loading = 0;
  }

  watch(tile) { this.seen.observe(tile.element); }
  forget(tile) { this.seen.unobserve(tile.element); this.tiles.delete(tile); }
  stop() { this.seen.disconnect(); clearInterval(this.timer); this.tiles.clear(); }

  next() {
    if (document.hidden) return;
    const now = performance.now();
    // The one that has waited longest first: each gets its turn even if there are more than can be loaded in time.
    const due = [...this.tiles].filter((tile) => tile.isLive && !tile.isSound && tile.pictureDue <= now).sort((one, other) => one.pictureDue - other.pictureDue);
    for (const tile of due.slice(0, picturesAtOnce - this.loading)) {
      tile.pictureDue = now + pictureSeconds * 1000;
      this.loading += 1;
      tile.loadPicture().finally(() => { this.loading -= 1; this.next(); });
    }
  }
}

class Tile {
  constructor(room, pictures) {
    this.pictures = pictures;
    this.pictureDue = 0;
    this.image = null;
    this.hasAsked = false;
    this.behind = [];
    this.name = h('div', { class: 'name' });
    this.facts = h('div', { class: 'facts' });
    this.badges = h('div', { class: 'badges' });
    this.why = h('div', { class: 'why' });
    this.why.hidden = true;
    this.empty = h('span', null, '');
    this.picture = h('div', { class: 'picture' }, this.badges, this.empty);
    this.link = h('a', { class: 'tile', href: `#/rooms/${encodeURIComponent(room.roomId)}` }, this.picture, h('div', { class: 'about' }, this.name, this.facts, this.why));
    this.element = h('li', null, this.link);
    this.element.tile = this;
    pictures.watch(this);
  }

  stop() { this.pictures.forget(this); }

  update(room) {
    const wasLive = this.isLive;
    this.room = room;
    this.isLive = room.state === 'live';
    setText(this.name, room.title || room.roomId);
    this.link.title = room.title ? `${room.title} (${room.roomId})` : room.roomId;
    if (this.isLive && !wasLive) { this.pictureDue = 0; this.hasAsked = false; }
    if (!this.isLive) { this.dropPicture(); this.stream = null; }
    this.drawEmpty();
    this.draw();
  }

  drawEmpty() { setText(this.empty, this.image ? '' : this.isSound ? t('Sound only') : this.isLive && !this.hasAsked ? t('Loading…') : t('No picture')); }

  dropPicture() {
    this.image?.remove();
    this.image = null;
  }

  get isSound() { return this.isLive && isSoundOnly(this.stream); }

  figures(stream) {
    this.stream = stream;
    if (this.isSound) this.dropPicture();
    this.drawEmpty();
    this.draw();
  }

  draw() {
    const { room, stream } = this;
    const verdict = stream?.verdict;
    const isInterrupted = room.state === 'interrupted';
    this.link.className = `tile ${isInterrupted ? 'bad' : verdict ?? ''}${this.isSound ? ' sound' : ''}`;
    const key = `${room.state} ${verdict}`;
    if (key !== this.drawn) show(this.badges, stateBadge(room.state), verdictBadge(verdict));
    this.drawn = key;
    // For a room with one stream, the stream's own figure is newer.
    const viewers = room.streams.length === 1 && stream ? stream.viewers : viewersOf(room);
    const facts = [t('{n} viewers', { n: count(viewers) })];
    if (stream) facts.push(bits(stream.bitsPerSecond));
    const worst = this.worstBehind(stream);
    const slow = stream?.slowViewers ?? 0;
    if (slow) facts.push(t('{n} slow viewers', { n: count(slow) }));
    if (slow && worst) facts.push(t('worst {ms} behind', { ms: ms(worst) }));
    facts.push(since(room.since));
    setText(this.facts, facts.join(' · '));
    const reason = isInterrupted ? [t('The push was interrupted: {reason}.', { reason: reasonWords(room.stateReason) }), room.expiresAt && t('The room expires at {time}.', { time: clock(room.expiresAt) })].filter(Boolean).join(' ')
      : verdict && verdict !== 'good' ? reasonText(stream.reasons[0], stream)
        : slow ? t('The stream is well, but a viewer is too slow for it.') : '';
    // The reasons of a good stream are notes: nothing needs to be done.
    const note = reason || verdict !== 'good' || !stream.reasons.length ? '' : reasonText(stream.reasons[0], stream);
    setText(this.why, reason || note);
    this.why.title = reason || note;
    this.why.hidden = !(reason || note);
    this.why.classList.toggle('dim', Boolean(note));
  }

  /** The highest value of the last minute: a viewer that skips frames catches up for a moment each time. */
  worstBehind(stream) {
    const at = performance.now();
    this.behind = this.behind.filter((each) => at - each.at < 60_000);
    if (stream?.worstBehindMs) this.behind.push({ at, ms: stream.worstBehindMs });
    return Math.max(0, ...this.behind.slice(-30).map((each) => each.ms));
  }

  async loadPicture() {
    // Loaded by a separate request: for the same URL, the browser would show its cached picture.
    const picture = await picturesOf(this.room.roomId).catch(() => null);
    this.hasAsked = true;
    if (!picture || !this.isLive || this.isSound) { this.drawEmpty(); return; }
    const address = URL.createObjectURL(picture);
    const next = h('img', { src: address, alt: t('Picture of {name}', { name: this.room.title || this.room.roomId }) });
    await next.decode().catch(() => {});
    URL.revokeObjectURL(address);
    if (!this.isLive || this.isSound) return;
    if (this.image) this.image.replaceWith(next); else this.picture.append(next);
    this.image = next;
    this.drawEmpty();
  }
}

export function wallPage(query) {
  const oneOf = (values, name) => (values.includes(query.get(name)) ? query.get(name) : values[0]);
  // Without an order the worst live rooms come first, and the newest of other lists.
  const filter = { state: query.get('state') ?? usual, q: query.get('q') ?? '', sort: orders.includes(query.get('sort')) ? query.get('sort') : '', pageSize: oneOf(pageSizes, 'pageSize') };
  const sortNow = () => filter.sort || (may(rights.listStreams) && !filter.q && filter.state === usual ? 'verdict' : orders[0]);
  const address = (filter) => `#/rooms?${new URLSearchParams(filter)}`;
  // Each page's start: a cursor and, for rooms merged in by viewers, the previous page's lowest count.
  const pages = [{ after: '', below: Infinity }];
  let arrival;
  const pictures = new Pictures(() => { clearTimeout(arrival); arrival = setTimeout(() => loadFigures().catch(() => {}), 200); });
  const list = h('ul', { class: 'wall' });
  const tiles = new KeyedList(list, (room) => room.roomId, (room) => new Tile(room, pictures));
  const total = h('span', { class: 'dim', role: 'status' });
  const others = h('a', { hidden: true });
  const illness = h('a', { class: 'button', title: t('Show the worst first'), hidden: true });
  const empty = h('div', { class: 'panel' });
  empty.hidden = true;
  const back = button(t('Previous'), async () => { pages.pop(); await load(); });
  const forth = button(t('Next'), async () => { pages.push(next); await load(); });
  const together = h('p', { class: 'panel', role: 'status' }, t('Most streams arrive late at the same time: look at this machine and its network first.'), ' ', h('a', { href: '#/server' }, t('Server')));
  together.hidden = true;
  let next = null;
  let turn = 0, shown = 0, isShown = true;

  const search = h('input', { type: 'search', value: filter.q, maxlength: 60, id: 'search' });
  let typing;
  search.addEventListener('input', () => { clearTimeout(typing); typing = setTimeout(() => change('q', search.value.trim()), 250); });
  const select = (name, pairs, value = filter[name]) => h('select', { name, onchange: (event) => change(name, event.target.value) }, options(pairs, value));

  function change(name, value) {
    filter[name] = value;
    sortChoice.value = sortNow();
    pages.length = 1;
    history.replaceState(null, '', address(filter));
    load().catch(() => {});
  }

  async function load() {
    const mine = turn += 1;
    const sorts = byFigures.includes(sortNow()) && may(rights.listStreams);
    const isUsual = !filter.q && filter.state === usual && pages.length === 1;
    const data = await (!sorts ? loadRooms() : !filter.q && filter.state.startsWith('live') ? loadSorted() : sortFound());
    const away = data.others ?? (isUsual && !data.list.length ? (await get('/rooms', { pageSize: 1 })).total : 0);
    // A later load was answered first, or the page has been left.
    if (mine < shown || !isShown) return;
    shown = mine;
    next = data.next;
    tiles.update(data.list);
    for (const [id, stream] of data.figures ?? []) tiles.rows.get(id)?.figures(stream);
    setText(total, data.text);
    others.href = address({ state: '', pageSize: filter.pageSize });
    illness.href = address({ sort: 'verdict', pageSize: filter.pageSize });
    setText(others, away > 0 ? t('{n} not live', { n: count(away) }) : '');
    others.hidden = !others.textContent;
    back.disabled = pages.length === 1;
    forth.disabled = !next;
    back.parentElement.hidden = pages.length === 1 && !next;
    empty.hidden = data.list.length > 0;
    if (!data.list.length) {
      show(empty, !isUsual ? t('No room fits.')
        : away > 0 ? [t('No room is live now.'), ' ', h('a', { href: others.href }, t('Show the rooms that are not live'))]
        : [t('Nobody has pushed a stream yet.'), ' ', t('Push one, for example with: {command}', { command: '' }),
          h('code', null, `ffmpeg -re -i VIDEO -c copy -f flv ${session.rtmp ?? `rtmp://${location.hostname}`}/live/cam1`)]);
    }
  }

  /** Loads a page in the store's order. */
  async function loadRooms() {
    const sort = byFigures.includes(sortNow()) ? orders[0] : sortNow();
    const isUsual = !filter.q && filter.state === usual;
    const [{ list, next, total, totalIsCapped }, all] = await Promise.all([get('/rooms', { state: filter.state, q: filter.q, sort, pageSize: filter.pageSize, after: pages.at(-1).after }), isUsual && get('/rooms', { pageSize: 1 })]);
    const cut = list.filter((room) => room.state === 'interrupted').length;
    return { list, next: next && { after: next }, others: isUsual ? all.total - total : 0, text: isUsual && !next && pages.length === 1 ? tally(total - cut, cut) : t(totalIsCapped ? 'more than {n} rooms' : '{n} rooms', { n: count(total) }) };
  }

  /** Loads a page of live streams by their figures, with their rooms. Rooms whose push was cut are the worst, and have waiting viewers. */
  async function loadSorted() {
    const { after, below } = pages.at(-1);
    const isByVerdict = sortNow() === 'verdict';
    // Their rooms are listed: after a restart there are no streams of them.
    const [page, cut] = await Promise.all([get('/streams', { state: 'live', sort: sortNow(), limit: filter.pageSize, after }),
      filter.state === usual ? get('/rooms', { state: 'interrupted', pageSize: mostSorted }) : { list: [], total: 0 }]);
    const { list, next } = page;
    if (isByVerdict && !after && (!next || list.length >= mostIlls || !isIll(list.at(-1)))) tellIlls(page);
    const mine = list.filter((stream) => stream.roomId !== null);
    const rooms = await roomsOf(mine.map((stream) => stream.roomId));
    const least = next ? list.at(-1).viewers : 0;
    const cutHere = cut.list.filter((room) => (isByVerdict ? !after : viewersOf(room) < below && viewersOf(room) >= least));
    const ranked = [...cutHere.map((room) => [room, viewersOf(room)]), ...rooms.map((room, index) => [room, mine[index].viewers])].filter(([room]) => room);
    if (!isByVerdict) ranked.sort(([, one], [, other]) => other - one);
    // A room with several streams is one tile, and one whose push has just ended is no live one.
    const tiles = [...new Map(ranked.map(([room]) => [room.roomId, room])).values()];
    // The list is this node's; rooms of other nodes follow on its last page.
    const here = list[0]?.node;
    if (!next && here !== null) {
      const known = new Set(tiles.map((room) => room.roomId));
      const { list: all } = await get('/rooms', { state: 'live', pageSize: mostSorted });
      tiles.push(...all.filter((room) => !known.has(room.roomId) && !room.streams.some((slot) => slot.isActive && slot.node === here)));
    }
    const isWhole = !after && !next;
    const live = isWhole ? tiles.filter((room) => room.state === 'live').length : (await get('/rooms', { state: 'live', pageSize: 1 })).total;
    return { list: tiles, next: next && { after: next, below: least }, text: tally(live, isWhole ? tiles.filter((room) => room.state === 'interrupted').length : cut.total), figures: byRoom(mine.map(figures)) };
  }

  /** The store finds text but does not sort by figures, so the first rooms found are sorted here. */
  async function sortFound() {
    const { list, total } = await get('/rooms', { state: filter.state, q: filter.q, pageSize: mostSorted });
    const start = Number(pages.at(-1).after), end = start + Number(filter.pageSize);
    const found = worstByRoom([...(await figuresOfAll(activeSlots(list))).values()]);
    const weigh = (room) => { const stream = found.get(room.roomId); return [ranks[room.state] ?? ranks[stream?.verdict] ?? -1, stream?.viewers ?? -1]; };
    list.sort((one, other) => {
      const [verdict, viewers] = weigh(one), [otherVerdict, otherViewers] = weigh(other);
      return (sortNow() === 'verdict' ? otherVerdict - verdict : 0) || otherViewers - viewers;
    });
    return { list: list.slice(start, end), next: end < list.length ? { after: end } : null, figures: found, text: t(total > list.length ? 'the first {n} rooms found, sorted' : '{n} rooms', { n: count(list.length) }) };
  }

  const activeSlots = (rooms) => rooms.flatMap((room) => room.streams.filter((slot) => slot.isActive));

  const ranks = { interrupted: 3, bad: 2, degraded: 1, good: 0 };

  /** Shows a room with several streams as its worst stream. */
  const worstByRoom = (streams) => byRoom([...streams].sort((one, other) => (ranks[other.verdict] ?? -1) - (ranks[one.verdict] ?? -1)));

  /** Shows a room with several streams as the first one in the given order. */
  function byRoom(streams) {
    const map = new Map();
    for (const stream of streams) if (stream.roomId !== null && !map.has(stream.roomId)) map.set(stream.roomId, stream);
    return map;
  }

  const known = new Map();
  async function roomsOf(ids) {
    const now = performance.now();
    for (const [id, { due }] of known) if (due < now) known.delete(id);
    // A copy, because an event may remove a room from `known` meanwhile.
    const rooms = new Map([...known].map(([id, { room }]) => [id, room]));
    const keep = (id, room) => { rooms.set(id, room); known.set(id, { room, due: now + roomSeconds * 1000 }); };
    const missing = () => ids.filter((id) => !rooms.has(id));
    // One call for many, as each counts for the token's rate. Where more are live it may lack some.
    if (missing().length > fewCalls) for (const room of (await get('/rooms', { state: 'live', pageSize: mostSorted })).list) keep(room.roomId, room);
    await Promise.all(missing().map(async (id) =>
      keep(id, await get(`/rooms/${encodeURIComponent(id)}`).catch((error) => { if (error.status === 404) return null; throw error; }))));
    return ids.map((id) => rooms.get(id));
  }

  const isIll = (stream) => stream.health?.verdict in ills;
  let illsTold = -Infinity;

  /** Counts the streams that are not well. A wall that is sorted by verdict has them already. */
  async function loadIlls() {
    if (performance.now() - illsTold > illSeconds * 1000) tellIlls(await get('/streams', { state: 'live', sort: 'verdict', limit: mostIlls }));
  }

  /** `list`: the worst streams first. */
  function tellIlls({ list, total }) {
    illsTold = performance.now();
    const ill = list.filter(isIll);
    const more = ill.length === list.length && total > list.length ? '+' : '';
    const numbers = Object.entries(ills).map(([verdict, text]) => [verdict, text, ill.filter((stream) => stream.roomId !== null && stream.health.verdict === verdict).length]);
    show(illness, numbers.filter(([, , n]) => n > 0).map(([verdict, text, n]) => [h('span', { class: `badge ${verdict}` }, text(count(n) + more)), ' ']));
    illness.hidden = !illness.textContent;
  }

  async function loadFigures() {
    if (!may(rights.listStreams) || byFigures.includes(sortNow())) return;
    // Few of hundreds of tiles are in view.
    const live = [...tiles.rows.values()].filter((tile) => tile.isLive && pictures.tiles.has(tile));
    const found = [...(await figuresOfAll(activeSlots(live.map((tile) => tile.room)))).values()];
    const worst = worstByRoom(found);
    for (const tile of live) tile.figures(worst.get(tile.room.roomId) ?? null);
    tellWhetherItIsUs(found);
  }

  /** When most streams at once have uplink problems, the cause is rarely as many uplinks. */
  function tellWhetherItIsUs(streams) {
    const isLate = (stream) => stream.verdict !== 'good' && ['media_behind_clock', 'uplink_stalls', 'uplink_jitter'].includes(stream.reasons[0]?.code);
    const late = streams.filter(isLate).length;
    together.hidden = late < 3 || late * 2 < streams.length;
  }

  const sortChoice = select('sort', [['-createdAt', t('Newest')], ['createdAt', t('Oldest')], ['title', t('Title')],
    ...may(rights.listStreams) ? [['viewers', t('Most viewers')], ['verdict', t('Worst verdict')]] : []], sortNow());

  // Events report changes; many at once cause only one load a second.
  let due;
  const feed = new Feed({ handle: (message) => {
    if (message.type !== 'event' && message.type !== 'gap') return;
    if (message.type === 'gap') known.clear(); else known.delete(message.roomId);
    due ??= setTimeout(() => { due = undefined; load().catch(() => {}); }, 1000);
  } });
  const stops = [every(5000, async () => { await load(); await loadFigures(); if (may(rights.listStreams)) await loadIlls(); })];

  const element = h('div', null,
    head(t('Rooms'), total, others, illness,
      may(rights.createRoom) && button(t('Create room'), createRoom)),
    h('div', { class: 'filters', role: 'search' },
      h('label', { class: 'grow' }, t('Search'), search),
      h('label', null, t('State'), select('state', [[usual, t('Live rooms')], ['', t('All states')], ...states.map((state) => [state, t(state)])])),
      h('label', null, t('Sort by'), sortChoice),
      h('label', null, t('Rooms per page'), select('pageSize', pageSizes.map((size) => [size, size])))),
    together, empty, list, h('div', { class: 'pages', hidden: true }, back, forth));

  return { element, title: t('Rooms'), stop() { isShown = false; stops.forEach((stop) => stop()); feed.stop(); clearTimeout(due); clearTimeout(arrival); tiles.stop(); pictures.stop(); } };
}

async function createRoom() {
  let made;
  const isDone = await ask(t('Create room'), '', [
    { name: 'roomId', label: t('Room id: letters, digits, _ and -; without one the server makes one'), length: 64 }, { name: 'title', label: t('Title, may be left out'), length: 200 },
  ], async ({ roomId, title }) => { made = await post('/rooms', { ...(roomId && { roomId }), ...(title && { title }) }); }, { verb: t('Create') });
  if (isDone) location.hash = `#/rooms/${encodeURIComponent(made.roomId)}`;
}
