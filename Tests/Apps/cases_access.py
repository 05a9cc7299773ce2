"""Pages by keyboard, and as a screen reader has them: cases as in cases.py."""
import re

from browser import Browser
from cases_class import DEMO, FAKE_DEVICES, Person, check
from machine_lab import Claw, create
from registry import case

# What a person acts on or looks at, by the role that a screen reader tells.
ROLES = {"button", "checkbox", "combobox", "disclosureTriangle", "DisclosureTriangle", "Iframe", "image", "img", "link", "listbox", "menuitem", "option",
         "radio", "searchbox", "slider", "spinbutton", "switch", "tab", "textbox", "Video", "dialog", "group", "log", "region"}
# The class's page has put its words in.
IS_READY = "Boolean(document.querySelector('#line')?.placeholder)"
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowDown": 40}


def nameless(page):
    """Roles and sources of what has no name but needs one."""
    page.send("Accessibility.enable")
    page.send("DOM.enable")
    found = []
    for node in page.send("Accessibility.getFullAXTree")["nodes"]:
        role = node.get("role", {}).get("value")
        properties = {each["name"]: each["value"].get("value") for each in node.get("properties", [])}
        acts = properties.get("focusable") and role != "RootWebArea"
        if node.get("ignored") or not (role in ROLES or acts) or node.get("name", {}).get("value", "").strip():
            continue
        # A group of nothing but its text needs no name; nor does what a named control consists of.
        if role in ("group", "region") and not acts:
            continue
        source = page.send("DOM.describeNode", backendNodeId=node["backendDOMNodeId"])["node"]
        found.append(f"{role} <{source['nodeName'].lower()} {source.get('attributes', [])}>")
    return found


def named(page):
    """Names of the controls, by role."""
    return [(node["role"]["value"], node["name"]["value"]) for node in page.send("Accessibility.getFullAXTree")["nodes"]
            if not node.get("ignored") and node.get("role", {}).get("value") in ("button", "textbox", "checkbox", "radio") and node.get("name", {}).get("value")]


def is_named(page, what, language="en", given=()):
    """Every control has a name, and one of the page's language unless somebody gave it."""
    missing = nameless(page)
    assert not missing, f"{what}: without a name: {missing}"
    if language == "zh":
        english = [(role, name) for role, name in named(page) if not re.search("[\u4e00-\u9fff]", name) and not any(part in name for part in given)]
        assert not english, f"{what}: not in Chinese: {english}"


@case
def pages_names(server):
    """Every control of every demo page has a name for who cannot see it, in both languages; a control without one is noticed."""
    number = create(server)["roomId"]
    with Claw(server, number, 1), Browser(server.folder, FAKE_DEVICES) as browser:
        for language in ("en", "zh"):
            machines = browser.page(f"http://{server.http}/demo/machine?host=1", language=language)
            machines.wait("document.querySelector('#machines a') !== null", "the list")
            is_named(machines, f"machines, {language}", language, ["Panda"])
            room = browser.page(f"http://{server.http}/demo/machine#{number}", language=language)
            room.wait("Boolean(document.querySelector('#queue')?.offsetParent) && !document.querySelector('#queue').disabled", "the room")
            is_named(room, f"a machine, {language}", language)
            room.run("document.querySelector('#queue').click()")
            room.wait("document.querySelector('#invite').open", "the invitation")
            is_named(room, f"an invitation, {language}", language)
            room.run("document.querySelector('#accept').click()")
            room.wait("!document.querySelector('#pad').hidden", "the game")
            is_named(room, f"a game, {language}", language)
            room.run("document.querySelector('#drop').click()")

            name = f"names-{language}"
            form = browser.page(f"http://{server.http}/demo/class", language=language)
            form.wait(IS_READY, "the form")
            is_named(form, f"a class's form, {language}", language)
            ann = Person(server, browser, "Ann", name, language=language).is_in()
            tim = Person(server, browser, "Tim", name, language=language).is_in()
            olga = Person(server, browser, "Olga", name, is_audience=True, language=language).is_in()
            ann.page.wait("document.querySelectorAll('#members li').length === 3", "all to be there")
            people = ["Ann", "Tim", "Olga"]
            olga.click("#hand")
            ann.reads("Olga", "#hands")
            for person in (ann, tim, olga):
                is_named(person.page, f"{person.name}'s class, {language}", language, people)
            ann.page.run("for (const each of document.querySelectorAll('#members details')) each.open = true")
            is_named(ann.page, f"the assistant's menus, {language}", language, people)
            ann.acts("Olga", "kick")
            ann.page.wait("document.querySelector('#ask').open", "the question")
            is_named(ann.page, f"a question, {language}", language, people)
            ann.click("#askNo")
            tim.page.click({"en": "+ New whiteboard", "zh": "+ 新建白板"}[language])
            tim.page.wait("!document.querySelector('#stageBoard').hidden", "the board")
            is_named(tim.page, f"a class with a whiteboard, {language}", language, people)
            board = browser.page(tim.page.run("document.querySelector('#stageBoard').src"), language=language)
            board.wait("Boolean(document.querySelector('#tools')?.offsetParent)", "the board's tools")
            is_named(board, f"a whiteboard, {language}", language)
            mesh = browser.page(f"http://{server.http}/mesh", language=language)
            mesh.wait("document.readyState === 'complete'", "the mesh's page")
            is_named(mesh, f"the mesh's page, {language}")
        # What this is for.
        mesh.run("document.body.append(document.createElement('button'))")
        assert [each.split()[0] for each in nameless(mesh)] == ["button"], nameless(mesh)


pages_names.settings = DEMO


def press(page, key):
    text = {"Enter": "\r", " ": " "}.get(key)
    shared = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": KEYS[key]}
    page.send("Input.dispatchKeyEvent", type="keyDown", **shared, **({"text": text} if text else {}))
    page.send("Input.dispatchKeyEvent", type="keyUp", **shared)


def reach(page, script, what):
    """Presses Tab until the element with the focus is this one, by an expression in which it is `it`."""
    for _ in range(80):
        if page.run(f"((it) => Boolean({script}))(document.activeElement)"):
            return
        press(page, "Tab")
    raise AssertionError(f"Tab does not lead to {what}; the focus is on {page.run('document.activeElement.outerHTML')[:200]}")


def type_in(page, text):
    page.send("Input.insertText", text=text)


@case
def class_keys(server):
    """The class's page without a mouse: joining, raising and answering a hand, a menu, a dialog said no and yes to, chat."""
    with Browser(server.folder, FAKE_DEVICES) as browser:
        people = {}
        for name, is_audience in (("Ann", False), ("Olga", True)):
            page = people[name] = browser.page(f"http://{server.http}/demo/class")
            page.wait(IS_READY, "the form")
            page.run("for (const id of ['name', 'room']) document.querySelector(`#${id}`).value = ''")
            reach(page, "it.id === 'name'", "the name")
            type_in(page, name)
            press(page, "Tab")
            assert page.run("document.activeElement.id") == "room"
            type_in(page, "keys")
            press(page, "Tab")
            assert page.run("document.activeElement.id") == "asLearner"
            if is_audience:
                press(page, "ArrowDown")
                page.wait("document.querySelector('#asAudience').checked", "audience to be chosen")
            reach(page, "it.id === 'enter'", "Join")
            press(page, "Enter")
            page.wait("!document.querySelector('#class').hidden", f"{name} to be in the class")
        ann, olga = people["Ann"], people["Olga"]
        olga.wait("document.querySelector('#me').textContent.includes('Audience')", "Olga to be audience")
        reach(olga, "it.id === 'hand'", "the hand")
        press(olga, "Enter")
        ann.wait("document.querySelector('#hands').textContent.includes('Olga')", "the hand")
        reach(ann, "it.closest('#hands') && it.textContent === 'Let speak'", "the answer")
        press(ann, " ")
        olga.wait("document.querySelector('#me').textContent.includes('Student')", "Olga to be a student")
        # Where one was, one still is: the button that is gone leaves no page without a focus.
        assert ann.run("document.activeElement !== document.body"), "the focus is lost with the hand"
        reach(ann, "it.localName === 'summary' && it.closest('#members li')?.textContent.includes('Olga')", "Olga's menu")
        press(ann, "Enter")
        reach(ann, "it.dataset.action === 'kick'", "Remove")
        press(ann, "Enter")
        ann.wait("document.querySelector('#ask').open && document.querySelector('#ask').contains(document.activeElement)", "the question with the focus")
        press(ann, "Escape")
        ann.wait("!document.querySelector('#ask').open", "the question to go")
        assert ann.run("document.activeElement.dataset.action") == "kick", "the focus is not where it was"
        reach(olga, "it.id === 'line'", "the chat")
        type_in(olga, "hello")
        press(olga, "Enter")
        ann.wait("document.querySelector('#lines').textContent.includes('hello')", "the word")
        press(ann, "Enter")
        ann.wait("document.querySelector('#ask').open", "the question again")
        reach(ann, "it.id === 'askYes'", "Yes")
        press(ann, "Enter")
        olga.wait("document.querySelector('#status').textContent.includes('removed you')", "Olga to be out")
        reach(ann, "it.id === 'leave'", "Leave")
        press(ann, "Enter")
        ann.wait("!document.querySelector('#join').hidden", "the way back in")
        check(browser)


class_keys.settings = DEMO
