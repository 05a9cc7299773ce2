// A class's whiteboard: shows the strokes of the page that the class sees. The assistant and the teacher draw.

const $ = (id) => document.getElementById(id);
const words = {
  title: ["Whiteboard", "白板"], color: ["Colour", "颜色"], width: ["Width", "粗细"], clear: ["Clear page", "清空本页"],
  sure: ["Clear for all?", "为所有人清空？"], former: ["Page before", "上一页"], next: ["Next page", "下一页"], page: ["Page", "第"], pageEnd: ["", "页"],
  black: ["Black", "黑色"], red: ["Red", "红色"], blue: ["Blue", "蓝色"], green: ["Green", "绿色"], orange: ["Orange", "橙色"], rubber: ["Eraser", "橡皮擦"],
  thin: ["Thin", "细"], medium: ["Medium", "中"], thick: ["Thick", "粗"],
  connecting: ["Connecting…", "正在连接…"], loading: ["Loading what was drawn…", "正在加载已有内容…"],
  lost: ["The connection was lost. Trying again…", "连接已断开，正在重试…"],
  denied: ["The server did not let this page in. Join the class again.", "服务器拒绝了此页面，请重新加入课堂。"],
  elsewhere: ["The board is open in other windows.", "白板已在其他窗口打开。"], left: ["You are no longer in the class.", "你已不在课堂中。"],
  deleted: ["This whiteboard was deleted.", "此白板已删除。"], ended: ["The class has ended.", "课堂已结束。"],
  board_full: ["The board is full. Clear a page to go on.", "白板已满，请先清空一页。"],
  not_allowed: ["Only the assistant and the teacher draw here.", "只有助教和老师可以书写。"],
  failed: ["The server could not store this. Try again.", "服务器未能保存，请重试。"],
  notTurned: ["The page could not be turned.", "翻页失败。"],
};
const language = (navigator.language || "en").toLowerCase().startsWith("zh") ? 1 : 0;
const word = (key) => words[key][language];

const most = 10_000;
const longest = 500;
const address = new URLSearchParams(location.search);
const token = address.get("authorization") || "";

document.documentElement.lang = language ? "zh" : "en";
document.title = word("title");
for (const element of document.querySelectorAll("[data-word]")) element.textContent = word(element.dataset.word);
for (const element of document.querySelectorAll("[data-label]")) element.setAttribute("aria-label", word(element.dataset.label));

const canvas = $("sheet");
const context = canvas.getContext("2d");
/** The strokes by page, in the order that all viewers share. */
let strokes = new Map();
/** Commands without an answer yet, by ref. */
const pending = new Map();
let page = 0;
let you = { mayDraw: false };
let isLive = false;
let socket = null;
let wait = 1000;
let ref = 0;
let current = null;

function say(text, isBad = false) {
  $("status").textContent = text;
  $("status").classList.toggle("bad", isBad);
}

// MARK: Drawing

function draw(stroke, from = 0) {
  const [width, height] = [canvas.width, canvas.height];
  const at = ([x, y]) => [x / most * width, y / most * height];
  context.strokeStyle = context.fillStyle = stroke.color;
  context.lineWidth = Math.max(1, stroke.width / 1000 * width);
  context.lineCap = context.lineJoin = "round";
  context.beginPath();
  context.moveTo(...at(stroke.points[from]));
  let isDot = true;
  for (const point of stroke.points.slice(from + 1)) {
    context.lineTo(...at(point));
    isDot &&= point[0] === stroke.points[from][0] && point[1] === stroke.points[from][1];
  }
  if (!isDot) return context.stroke();
  context.beginPath();
  context.arc(...at(stroke.points[from]), context.lineWidth / 2, 0, 2 * Math.PI);
  context.fill();
}

function paint() {
  context.clearRect(0, 0, canvas.width, canvas.height);
  for (const stroke of strokes.get(page) || []) draw(stroke);
  for (const each of pending.values()) if (each.page === page && each.stroke) draw(each.stroke);
  if (current && current.page === page && current.stroke.points.length > 0) draw(current.stroke);
  canvas.setAttribute("aria-label", `${word("title")}, ${$("page").textContent}`);
}

function keep(number, stroke) {
  if (!strokes.has(number)) strokes.set(number, []);
  strokes.get(number).push(stroke);
}

function resize() {
  const box = canvas.getBoundingClientRect();
  const [width, height] = [Math.round(box.width * devicePixelRatio), Math.round(box.height * devicePixelRatio)];
  if (width < 1 || (canvas.width === width && canvas.height === height)) return;
  canvas.width = width;
  canvas.height = height;
  paint();
}
new ResizeObserver(resize).observe(canvas);

function show() {
  const draws = you.mayDraw && isLive;
  if (!draws) current = null;
  $("tools").hidden = $("former").hidden = $("next").hidden = !you.mayDraw;
  $("clear").disabled = !draws;
  $("former").disabled = !draws || page === 0;
  $("next").disabled = !draws || page >= 1000;
  canvas.classList.toggle("draws", draws);
  $("page").textContent = [word("page"), page + 1, word("pageEnd")].join(" ").trim();
  document.body.dataset.state = isLive ? "live" : "waiting";
  paint();
}

// MARK: The server

const events = {
  hello(frame) {
    wait = 1000;
    strokes = new Map();
    you = frame.you;
    page = frame.page;
    say(frame.more ? word("loading") : "");
    events.strokes(frame);
  },
  strokes(frame) {
    for (const each of frame.strokes) keep(each.page, each.stroke);
    isLive = !frame.more;
    if (isLive) {
      say("");
      // Sends again the strokes that were unanswered when the connection broke. A stroke that did arrive is drawn twice in the same place.
      const again = you.mayDraw ? [...pending.values()].filter((each) => each.stroke) : [];
      pending.clear();
      for (const each of again) send("draw", each.page, each.stroke);
    }
    show();
  },
  draw(frame) {
    keep(frame.page, frame.stroke);
    if (frame.page !== page) return;
    draw(frame.stroke);
    if (pending.size > 0 || current) paint();
  },
  clear(frame) {
    strokes.delete(frame.page);
    paint();
  },
  page(frame) {
    finish();
    page = frame.page;
    show();
  },
  you(frame) {
    finish();
    you = frame.you;
    show();
  },
  ack(frame) {
    const each = pending.get(frame.ref);
    pending.delete(frame.ref);
    if (each?.stroke) keep(each.page, each.stroke);
    say("");
  },
  error(frame) {
    if (!pending.delete(frame.ref)) return;
    say(word(words[frame.code] ? frame.code : "failed"), true);
    paint();
  },
  closed() {}, pong() {},
};

function send(type, number, stroke) {
  const isOpen = socket?.readyState === WebSocket.OPEN;
  if (!isOpen && !stroke) return;
  ref += 1;
  // A line that was cut off by a lost connection is sent over the next one.
  pending.set(ref, { page: number, stroke });
  if (isOpen) socket.send(JSON.stringify({ type, ref, page: number, stroke }));
}

/** A ticket keeps the token out of addresses that proxies log. Null when the server refuses; throws when the server cannot be reached. */
async function ticket() {
  const answer = await fetch("/channel/ticket", { method: "POST", body: JSON.stringify({ token }) });
  if (answer.status >= 500 || answer.status === 429) throw new Error(`${answer.status}`);
  if (!answer.ok) return null;
  return (await answer.json()).ticket;
}

const final = { 4001: "elsewhere", 4002: "left", 4003: "denied", 4004: "ended" };

async function open() {
  say(word(wait > 1000 ? "lost" : "connecting"), wait > 1000);
  let once;
  try {
    once = await ticket();
  } catch {
    return retry();
  }
  if (!once) return say(word("denied"), true);
  const query = new URLSearchParams({ ticket: once });
  if (address.has("roomId")) query.set("roomId", address.get("roomId"));
  const here = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${location.pathname}?${query}`);
  socket = here;
  let heard = Date.now();
  // A lost network sends no close event.
  const watch = setInterval(() => {
    if (here.readyState !== WebSocket.OPEN) return;
    if (Date.now() - heard > 45_000) here.close();
    else here.send('{"type":"ping"}');
  }, 15_000);
  here.addEventListener("message", (event) => {
    heard = Date.now();
    const frame = JSON.parse(event.data);
    events[frame.type]?.(frame);
  });
  here.addEventListener("close", (event) => {
    clearInterval(watch);
    isLive = false;
    finish();
    show();
    const reason = final[event.code];
    if (!reason) return retry();
    pending.clear();
    paint();
    say(word(event.reason === "deleted" || event.reason === "no_such_board" ? "deleted" : reason), true);
  });
}

function retry() {
  say(word("lost"), true);
  setTimeout(open, wait * (0.75 + Math.random() / 2));
  wait = Math.min(wait * 2, 15_000);
}

// MARK: The user

const inks = { black: "#1d2025", red: "#d3202a", blue: "#1462c8", green: "#1b8a3c", orange: "#ee7d00", rubber: "#ffffff" };
const widths = { thin: 2, medium: 5, thick: 12 };

function choice(group, key, style) {
  const label = document.createElement("label");
  const input = document.createElement("input");
  input.type = "radio";
  input.name = group;
  input.value = key;
  input.setAttribute("aria-label", word(key));
  label.title = word(key);
  label.classList.add(key);
  for (const [name, value] of Object.entries(style)) label.style.setProperty(name, value);
  label.append(input);
  $(group).append(label);
  return input;
}

for (const [key, color] of Object.entries(inks)) choice("colors", key, { "--ink": color }).checked = key === "black";
for (const [key, width] of Object.entries(widths)) choice("widths", key, { "--size": `${0.25 + width / 14}rem` }).checked = key === "medium";
$("tools").addEventListener("submit", (event) => event.preventDefault());

function pen() {
  const chosen = (group) => document.querySelector(`input[name=${group}]:checked`).value;
  const width = widths[chosen("widths")];
  // The eraser is wider than any line.
  return chosen("colors") === "rubber" ? { color: inks.rubber, width: Math.min(50, 4 * width) } : { color: inks[chosen("colors")], width };
}

function place(event) {
  const box = canvas.getBoundingClientRect();
  const whole = (part) => Math.round(Math.min(1, Math.max(0, part)) * most);
  return [whole((event.clientX - box.left) / box.width), whole((event.clientY - box.top) / box.height)];
}

function add(point) {
  const { points } = current.stroke;
  const last = points.at(-1);
  // Too short to be visible.
  if (last && Math.hypot(last[0] - point[0], last[1] - point[1]) < 8) return;
  points.push(point);
  if (points.length > 1) draw({ ...current.stroke, points: points.slice(-2) });
  if (points.length < longest) return;
  send("draw", current.page, { ...current.stroke, points: [...points] });
  current.stroke.points = [point];
}

/** Ends the current line and sends it. */
function finish() {
  if (!current) return;
  const { stroke, page: number } = current;
  current = null;
  if (stroke.points.length === 1) stroke.points.push(stroke.points[0]);
  if (stroke.points.length < 2 || !you.mayDraw) return;
  if (number === page) draw(stroke);
  send("draw", number, stroke);
}

canvas.addEventListener("pointerdown", (event) => {
  if (!you.mayDraw || !isLive || current || event.button !== 0) return;
  event.preventDefault();
  canvas.setPointerCapture(event.pointerId);
  current = { pointer: event.pointerId, page, stroke: { points: [], ...pen() } };
  add(place(event));
});
canvas.addEventListener("pointermove", (event) => {
  if (current?.pointer !== event.pointerId) return;
  const all = event.getCoalescedEvents?.() ?? [];
  for (const each of all.length > 0 ? all : [event]) add(place(each));
});
for (const type of ["pointerup", "pointercancel", "lostpointercapture"]) {
  canvas.addEventListener(type, (event) => { if (current?.pointer === event.pointerId) finish(); });
}

let sure = 0;
function unsure() {
  clearTimeout(sure);
  sure = 0;
  $("clear").textContent = word("clear");
  $("clear").classList.remove("sure");
}
unsure();
$("clear").addEventListener("blur", unsure);
$("clear").addEventListener("click", () => {
  if (sure) {
    unsure();
    return send("clear", page);
  }
  sure = setTimeout(unsure, 5000);
  $("clear").textContent = word("sure");
  $("clear").classList.add("sure");
});

/** Turns the class's page; this page follows. */
async function turn(to) {
  const board = new URL(location.href);
  for (const name of ["role", "roomId", "authorization"]) board.searchParams.delete(name);
  try {
    const answer = await fetch("/classroom/api/v1/room/whiteboard/turn-page", {
      method: "POST", headers: { authorization: token, "content-type": "application/json" },
      body: JSON.stringify({ roomId: address.get("roomId"), whiteboardId: board.href, page: to }),
    });
    if ((await answer.json()).errCode !== 0) throw new Error("refused");
  } catch {
    say(word("notTurned"), true);
  }
}
$("former").addEventListener("click", () => turn(page - 1));
$("next").addEventListener("click", () => turn(page + 1));

show();
resize();
open();
