// What pages do beyond links and forms: stay fresh, keys, copying, logs, and
// reports that a person opens.  Without it every page is still there.
"use strict";

const main = document.getElementById("main");
const live = document.getElementById("live");

// --- fresh: what is shown is asked for again after each change -------------

const PAUSE_MS = 250;
const POLL_MS = 5000;
let etag = main.dataset.tag ?? "";
let asking = false;
let again = false;
let pressed = false; // a click is on its way
let then = Boolean(new URL(location.href).searchParams.get("at")); // the past

// Whoever types, has marked something to copy it, or reads down a list that
// grows at its head, is not interrupted.
function busy() {
    const at = document.activeElement;
    const marked = getSelection();
    return then || pressed || document.hidden || main.querySelector("[data-still]") ||
        (main.contains(at) && at.matches("input, select, textarea")) ||
        (list && !list.numbered && scrollY > 0) ||
        (marked && !marked.isCollapsed && main.contains(marked.anchorNode));
}

// `fresh`: the same page, whose list stays where it was scrolled to.
function show(html, fresh) {
    const focused = focusOf(main);
    const log = main.querySelector("pre.log");
    const page = new DOMParser().parseFromString(html, "text/html");
    main.replaceChildren(...page.body.childNodes);
    const rows = main.querySelector("table.rows[data-page]");
    if (fresh && list && rows && Number(rows.ariaRowCount) - 1 > list.limit)
        rows.replaceWith(list.table);
    if (log)
        main.querySelector("p.log")?.replaceWith(log);
    prepare();
    const link = focused(main);
    link?.focus({ preventScroll: true });
    if (link?.matches(".map a.cell"))
        rove(cells(), link);
}

// The content of this page, now or as it was at a moment.
async function content(at) {
    const url = new URL(location.href);
    url.searchParams.set("fragment", "1");
    if (at)
        url.searchParams.set("at", at);
    else
        url.searchParams.delete("at");
    return fetch(url, { headers: at ? {} : { "If-None-Match": etag } });
}

async function refresh() {
    if (asking || busy()) {
        again = true;
        return;
    }
    asking = true;
    again = false;
    try {
        const answer = await content(null);
        if (answer.status === 401 || answer.status === 403) {
            location.reload();
            return;
        }
        if (answer.status === 200 || answer.status === 404) {
            const html = await answer.text();
            etag = answer.headers.get("ETag") ?? "";
            if (!busy())
                show(html, true);
            document.dispatchEvent(new Event("biga-shown"));
        }
        if (!busy())
            await listRefresh();
    } catch {
        // the stream says when the server is back
    } finally {
        asking = false;
    }
    if (again)
        setTimeout(refresh, PAUSE_MS);
}

function say(word, lost) {
    if (!live)
        return;
    live.hidden = false;
    live.textContent = word;
    live.classList.toggle("lost", lost);
}

// A browser keeps few connections to one server: a page that nobody sees,
// also one that can be gone back to, holds none.
let changes = null;
let polling = 0;

function follow() {
    if (changes || polling)
        return;
    changes = new EventSource("/v1/changes");
    changes.addEventListener("open", () => say("live", false));
    changes.addEventListener("change", refresh);
    changes.addEventListener("error", () => {
        if (changes?.readyState === EventSource.CLOSED) {
            say("every 5 s", true);
            polling = setInterval(refresh, POLL_MS);
        } else {
            say("waiting for the server", true);
        }
    });
}

function rest() {
    changes?.close();
    changes = null;
}

// --- time: a slider over what the server remembers ---------------------------

const MINUTE_MS = 60000;
const time = document.getElementById("time");
const moment = document.getElementById("moment");
let wished = 0; // how often a moment was
let going = false;

function address(at) {
    const url = new URL(location.href);
    if (at)
        url.searchParams.set("at", at);
    else
        url.searchParams.delete("at");
    history.replaceState(null, "", url);
}

// A slider that is drawn passes hundreds of moments: one is asked for at a
// time, and then the one where it is by now.
async function goTo(at) {
    wished++;
    then = at !== null;
    time.classList.toggle("past", then);
    time.elements.at.value = at ?? "";
    etag = "";
    if (going)
        return;
    going = true;
    try {
        for (let mine = 0; mine !== wished;) {
            mine = wished;
            const wish = then ? time.elements.at.value : null;
            address(wish);
            const answer = await content(wish);
            if (answer.status === 401)
                location.reload();
            const html = await answer.text();
            if (mine === wished)
                show(html, false);
        }
    } finally {
        going = false;
    }
}

function slide() {
    const minutes = Number(moment.value);
    goTo(minutes === 0 ? null
        : new Date(Date.now() + minutes * MINUTE_MS).toISOString());
}

if (time) {
    const span = document.getElementById("span");
    for (const part of time.querySelectorAll("[hidden]"))
        part.hidden = false;
    moment.addEventListener("input", slide);
    span.addEventListener("change", () => {
        moment.min = -span.value;
        moment.step = Math.max(1, span.value / 1440);
    });
    document.getElementById("now").addEventListener("click", () => {
        moment.value = 0;
        goTo(null);
    });
    // what is followed from a page of the past is of the past, too; links of
    // the bar stay, and lead to now again
    document.addEventListener("click", (event) => {
        const link = event.target.closest("a");
        if (!link || link.origin !== location.origin ||
            !(then || link.closest("header")) ||
            !/^\/(ui\/((nodes|leaves|cards|jobs|pods)\/.+|nodes|jobs|pending|events))?$/
                .test(link.pathname) ||
            (main.contains(link) && link.pathname === location.pathname))
            return;
        const url = new URL(link.href);
        if (then)
            url.searchParams.set("at", time.elements.at.value);
        else
            url.searchParams.delete("at");
        link.href = url;
    }, true);
}

// --- keys: / to search, arrows from cell to cell and from row to row --------

function cells() {
    return [...main.querySelectorAll(".map a.cell")];
}

function rows() {
    return [...main.querySelectorAll("table.rows tbody tr")]
        .map((row) => row.querySelector("a")).filter(Boolean);
}

// One cell of the map is in the order of Tab; arrows lead to the others.
function rove(list, to) {
    for (const link of list)
        link.tabIndex = link === to ? 0 : -1;
}

// The nearest cell above or below.
function across(list, from, down) {
    const a = from.getBoundingClientRect();
    let best = null;
    let least = Infinity;
    for (const link of list) {
        const b = link.getBoundingClientRect();
        const far = down ? b.top - a.top : a.top - b.top;
        if (far < a.height / 2)
            continue;
        const cost = far * 3 + Math.abs(b.left - a.left);
        if (cost < least) {
            least = cost;
            best = link;
        }
    }
    return best;
}

function step(key, from) {
    const map = from.matches(".map a.cell");
    const list = map ? cells() : rows();
    const at = list.indexOf(from);
    if (at < 0)
        return null;
    switch (key) {
    case "Home": return list[0];
    case "End": return list.at(-1);
    case "ArrowLeft": return map ? list[at - 1] : null;
    case "ArrowRight": return map ? list[at + 1] : null;
    case "ArrowUp": return map ? across(list, from, false) : list[at - 1];
    case "ArrowDown": return map ? across(list, from, true) : list[at + 1];
    default: return null;
    }
}

document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input, select, textarea");
    if (event.ctrlKey || event.metaKey || event.altKey)
        return;
    if (event.key === "/" && !typing) {
        event.preventDefault();
        document.getElementById("q")?.focus();
        document.getElementById("q")?.select();
    } else if (event.key === "Escape" && typing) {
        event.target.blur();
        main.focus();
    } else if (!typing && listStep(event.key, event.target)) {
        event.preventDefault();
    } else if (!typing) {
        const to = event.target.matches("a") && step(event.key, event.target);
        if (!to)
            return;
        event.preventDefault();
        if (to.matches(".map a.cell"))
            rove(cells(), to);
        to.focus();
    }
});

// --- copying and logs --------------------------------------------------------

async function copy(button) {
    const code = button.previousElementSibling;
    try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
    } catch { // without TLS a browser gives no clipboard: it is marked
        getSelection().selectAllChildren(code);
    }
}

async function read(link) {
    const box = document.createElement("pre");
    box.className = "log";
    box.tabIndex = 0;
    box.setAttribute("aria-label", "Log");
    const answer = await fetch(link.href, { headers: { Accept: "text/plain" } });
    box.textContent = await answer.text() || "nothing was written yet";
    link.closest("p").replaceWith(box);
}

main.addEventListener("click", (event) => {
    const button = event.target.closest("button.copy");
    const link = event.target.closest("a.log");
    if (button) {
        copy(button);
    } else if (link && !event.ctrlKey && !event.metaKey) {
        event.preventDefault();
        read(link);
    }
});

// --- each time a page is shown -----------------------------------------------

function prepare() {
    const map = cells();
    if (map.length)
        rove(map, map[0]);
    listBegin();
    for (const button of main.querySelectorAll("button.copy"))
        button.hidden = false;
    for (const wide of main.querySelectorAll(".wide"))
        if (wide.scrollWidth > wide.clientWidth)
            wide.tabIndex = 0;
}

prepare();
if (live && !main.querySelector("[data-still]")) {
    follow();
    document.addEventListener("visibilitychange", () => {
        if (document.hidden) {
            rest();
        } else {
            follow();
            refresh();
        }
    });
    addEventListener("pagehide", rest);
    addEventListener("pageshow", follow);
    const later = () => {
        pressed = false;
        if (again)
            setTimeout(refresh, PAUSE_MS);
    };
    document.addEventListener("focusout", later);
    document.addEventListener("scrollend", later);
    document.addEventListener("pointerdown", () => { pressed = true; });
    document.addEventListener("pointerup", later);
    document.addEventListener("pointercancel", later);
}
