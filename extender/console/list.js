// Long lists: their pages are fetched as they come near to what is seen, and
// dropped when they are far from it.  Without it they are pages with links.
"use strict";

const NEAR = "700px 0px";
let list = null; // the one that is shown, when it has more than a page

// What finds the link that has the focus in what takes the place of `root`: of
// those that lead to the same, as rows to one leaf, the one that stands there.
function focusOf(root) {
    const link = root.contains(document.activeElement)
        ? document.activeElement : null;
    const href = link?.getAttribute("href");
    const same = (where) => href
        ? [...where.querySelectorAll(`a[href="${CSS.escape(href)}"]`)] : [];
    const at = same(root).indexOf(link);
    return (where) => {
        const found = same(where);
        return found[at] ?? found[0];
    };
}

function listRoom(page) {
    const body = document.createElement("tbody");
    const cell = body.insertRow().insertCell();
    cell.colSpan = list.table.tHead.rows[0].cells.length;
    cell.style.height = `${page.height}px`;
    body.rows[0].className = "room";
    body.rows[0].setAttribute("aria-hidden", "true");
    return body;
}

function listPut(page, body) {
    if (page.body) {
        list.watch.unobserve(page.body);
        page.body.replaceWith(body);
    } else {
        list.table.append(body);
    }
    page.body = body;
    body.page = page;
    list.watch.observe(body);
}

// `body`: its rows, when they are there.
function listAdd(url, body) {
    const last = list.pages.at(-1);
    const page = {
        url, tag: "", here: Boolean(body), near: false, loading: null,
        first: last ? last.first + last.size : 0,
        size: body ? body.rows.length : list.limit,
        height: list.rowHeight * list.limit, body: null
    };
    list.pages.push(page);
    if (list.numbered)
        page.size = list.limit;
    listPut(page, body ?? listRoom(page));
}

function listUrl(number) {
    const url = new URL(location.href);
    if (list.numbered) {
        url.searchParams.set("page", number);
        url.searchParams.set("limit", list.limit);
    }
    url.searchParams.set("fragment", "rows");
    return url;
}

// As many pages as there are by now.
function listResize(rowcount) {
    list.table.ariaRowCount = rowcount;
    list.n = rowcount - 1;
    const pages = Math.max(1, Math.ceil(list.n / list.limit));
    while (list.pages.length > pages) {
        const page = list.pages.pop();
        list.watch.unobserve(page.body);
        page.body.remove();
    }
    while (list.pages.length < pages)
        listAdd(listUrl(list.pages.length + 1), null);
}

// Of a list whose end is not known the page behind.
function listGoOn(page, next) {
    page.size = page.body.rows.length;
    [...page.body.rows].forEach((row, i) => {
        row.ariaRowIndex = page.first + i + 2;
    });
    list.n = Math.max(list.n, page.first + page.size);
    if (!next || page !== list.pages.at(-1))
        return;
    const url = new URL(next.href);
    url.searchParams.set("fragment", "rows");
    listAdd(url, null);
}

// The first page of such a list is the same when it is fetched again, whatever
// came before it meanwhile: else what moved on would be on no page.
function listStay(page) {
    const times = [...page.body.querySelectorAll("time")]
        .map((x) => x.dateTime).sort();
    if (times.length)
        page.url.searchParams.set("until", times.at(-1));
}

async function listFetch(page) {
    const mine = list;
    const answer = await fetch(page.url,
        { headers: page.here && page.tag ? { "If-None-Match": page.tag } : {} });
    if (answer.status === 401 || answer.status === 403)
        location.reload();
    if (answer.status !== 200)
        return answer.status === 304;
    const html = await answer.text();
    const page2 = new DOMParser().parseFromString(html, "text/html");
    const table = page2.querySelector("table.rows");
    if (mine !== list || !list.pages.includes(page))
        return false;
    page.tag = answer.headers.get("ETag") ?? "";
    if (!table)
        return false;
    const focused = focusOf(page.body);
    page.here = true;
    listPut(page, document.adoptNode(table.tBodies[0]));
    focused(page.body)?.focus({ preventScroll: true });
    if (list.numbered)
        listResize(Number(table.ariaRowCount));
    else
        listGoOn(page, page2.querySelector(".more a[rel=next]"));
    return true;
}

function listLoad(page) {
    page.loading ??= listFetch(page).catch(() => false).finally(() => {
        page.loading = null;
    });
    return page.loading;
}

// One at a time: who draws the bar to the end passes hundreds.
async function listWork() {
    const mine = list;
    if (mine.working)
        return;
    mine.working = true;
    for (let page; mine === list;) {
        page = mine.pages.find((x) => x.near && !x.here);
        if (!page || !await listLoad(page))
            break;
    }
    mine.working = false;
}

function listDrop(page) {
    const marked = getSelection();
    if (page.body.contains(document.activeElement) ||
        (!marked.isCollapsed && page.body.contains(marked.anchorNode)))
        return;
    page.height = page.body.offsetHeight;
    page.here = false;
    page.tag = "";
    listPut(page, listRoom(page));
}

function listSeen(entries) {
    for (const entry of entries) {
        const page = entry.target.page;
        if (!list || page?.body !== entry.target)
            continue;
        page.near = entry.isIntersecting;
        if (page.here && !page.near)
            listDrop(page);
    }
    if (list)
        listWork();
}

// Columns keep their widths whatever rows come.
function listFreeze() {
    const heads = [...list.table.tHead.rows[0].cells];
    list.table.classList.remove("still");
    list.table.style.minWidth = "";
    for (const head of heads)
        head.style.width = "";
    const widths = heads.map((head) => head.offsetWidth);
    const whole = list.table.offsetWidth;
    heads.forEach((head, i) => {
        head.style.width = `${widths[i] / whole * 100}%`;
    });
    list.table.style.minWidth = `${Math.min(whole, 1000)}px`;
    list.table.classList.add("still");
}

function listEnd() {
    list?.watch.disconnect();
    list = null;
}

function listBegin() {
    const table = main.querySelector("table.rows[aria-rowcount]");
    const more = main.querySelector("p.more:has(a[rel])");
    if (list && table === list.table) {
        more?.remove();
        return;
    }
    listEnd();
    if (!table || !more)
        return;
    const body = table.tBodies[0];
    const limit = Number(table.dataset.limit);
    const numbered = "page" in table.dataset;
    list = {
        table, limit, numbered, n: body.rows.length, pages: [], working: false,
        rowHeight: body.rows.length ? body.offsetHeight / body.rows.length : 30,
        watch: new IntersectionObserver(listSeen, { rootMargin: NEAR })
    };
    listFreeze();
    body.remove();
    const shown = numbered ? Number(table.dataset.page) : 1;
    const n = numbered ? Number(table.ariaRowCount) - 1 : limit;
    for (let i = 1; i <= Math.max(1, Math.ceil(n / limit)); i++)
        listAdd(listUrl(i), i === shown && body.rows.length ? body : null);
    if (numbered) {
        list.n = n;
    } else {
        listStay(list.pages[0]);
        listGoOn(list.pages[0], more.querySelector("a[rel=next]"));
    }
    more.remove();
    if (shown > 1 && scrollY === 0)
        list.pages[shown - 1]?.body.scrollIntoView();
}

// After a change: the rows that are there.
async function listRefresh() {
    const mine = list;
    if (mine?.numbered)
        for (const page of mine.pages.filter((x) => x.here && x.near))
            if (mine === list)
                await listLoad(page);
    if (list)
        listWork();
}

async function listFocus(n) {
    const page = list.pages.findLast((x) => x.first <= n);
    if (!page || n >= list.n)
        return;
    if (!page.here) {
        page.body.scrollIntoView({ block: "nearest" });
        await listLoad(page);
    }
    page.body.rows[n - page.first]?.querySelector("a")?.focus();
    for (const left of list.pages.filter((x) => x.here && !x.near))
        if (left !== page)
            listDrop(left);
}

// Keys: from row to row, to the first and to the last.  False: they are not
// for it.
function listStep(key, from) {
    const row = list?.table.contains(from) && from.closest("tr");
    if (!row)
        return false;
    const at = Number(row.ariaRowIndex) - 2;
    const to = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0,
        End: list.n - 1 }[key];
    if (to === undefined)
        return false;
    if (to >= 0)
        listFocus(to);
    return true;
}

addEventListener("resize", () => {
    if (list)
        listFreeze();
});
