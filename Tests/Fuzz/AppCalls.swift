import Rooms
import Support

@testable import Apps

extension FuzzTarget {
    /// A machine's input: a command from the player or the device while a game is played, or a call of the HTTP API. A refused one
    /// changes nothing; an accepted one is within its limits.
    static let machine = FuzzTarget("machine", maxLength: 2_048) { input in
        var input = input
        let kind = input.byte()
        guard kind & 1 == 0 else {
            let paths = ["tourist", "room/list", "host/create", "host/manage", "host/query", "else"]
            let pairs = String(decoding: input.rest, as: UTF8.self).split(separator: "&").map { pair in
                let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                return (name: String(parts[0]), value: parts.count > 1 ? String(parts[1]) : "")
            }
            do throws(DollsCatcherError) {
                switch try DollsCatcherCall.read(path: DollsCatcherCall.prefix + paths[Int(kind >> 1) % paths.count], parameters: pairs) {
                case .roomList(let sid, let limit, let offset):
                    expect(sid.utf8.count <= GatheringLimits.nameBytes && (1...100).contains(limit) && offset >= 0, "past its limits")
                case .hostCreate(let accid, _, let password, let name, _):
                    expect(DollsCatcherAccount.isAccid(accid) && accid == accid.lowercased(), "an account \(accid)")
                    expect(name.utf8.count <= GatheringLimits.nameBytes, "a long name")
                    expect((password ?? "").utf8.count <= GatheringLimits.nameBytes, "a long password")
                case .hostManage(let id, let isOpen, let isPublic): expect(id > 0 && (isOpen != nil || isPublic != nil), "nothing to do")
                case .hostQuery(let id): expect(id > 0, "a room \(id)")
                case .tourist, nil: break
                }
            } catch {
                expect(parsed(DollsCatcherAnswer.failure(error).text) != nil && error.code >= 400, "an error that is no answer")
            }
            return
        }
        guard let content = try? JSONParser.parse(input.rest) else { return }
        var machine = Machine(.init(name: "m", accid: "m@x"), limits: MachineLimits(), salt: "00")
        let begin: [(Gathering.Input, Int64)] = [
            (.connect(id: "host", name: "m", role: Gathering.host, ConnectionID(1)), 0),
            (.connect(id: "p", name: "p", role: Machine.player, ConnectionID(2)), 0), (.offer(from: "p", value: "{}"), 0), (.tick, 1_500),
        ]
        for (input, nowMs) in begin { _ = try? machine.apply(input, nowMs: nowMs) }
        guard let uuid = machine.turn?.uuid else { fatalError("nobody is invited") }
        if kind & 2 == 2 {
            _ = try? machine.apply(.command(from: "p", to: nil, content: MachineCommand(.accept(uuid: uuid)).content), nowMs: 1_600)
            expect(machine.turn?.phase == .playing, "no game")
        }
        if kind & 4 == 4 { _ = try? machine.apply(.command(from: "p", to: nil, content: ["command": 2]), nowMs: 1_700) }
        let before = machine
        do throws(GatheringRefusal) {
            let effects = try machine.apply(.command(from: kind & 8 == 8 ? "host" : "p", to: nil, content: content), nowMs: 1_800)
            for case .send(let signal, _) in effects {
                let frame = ChannelWriter.frame(signal, kind: "machine", room: "m-1", isPaused: false, messages: [])
                expect(frame.flatMap { parsed($0.text) } != nil, "a frame that is no JSON")
            }
        } catch {
            expect(machine == before, "a refusal changed something")
        }
        let stored = try? Machine(state: machine.state.text, limits: MachineLimits(), nowMs: 2_000)
        expect(stored?.gathering.queue == machine.gathering.queue, "the store would not bring it back")
    }

    /// Calls of the classes' API. What is read has its class's id and is within its limits; a refusal has a code that its clients know.
    static let classroom = FuzzTarget("classroom", maxLength: 4_096) { input in
        let paths = [
            "/room/join", "/room/leave", "/room/kick", "/room/downgrade", "/room/change-role", "/room/transfer", "/room/speech/apply",
            "/room/speech/approve", "/room/upgrade/invite", "/room/upgrade/approve", "/room/device/control", "/room/device/sync",
            "/room/display", "/room/whiteboard/create", "/room/whiteboard/delete", "/room/whiteboard/turn-page",
            "/room/members/online-status",
            "/user/refresh-token",
        ]
        var input = input
        let path = paths[Int(input.byte()) % paths.count]
        do throws(GatheringRefusal) {
            let call = try ClassroomCall.read(
                method: "POST", path: path, query: [("nonce", "1"), ("timestamp", "2"), ("signature", "3")],
                body: String(decoding: input.rest, as: UTF8.self))
            guard let call else { fatalError("no call at \(path)") }
            if let room = call.roomID { expect(ClassroomCall.isRoomID(room), "a class \(room)") }
            if case .join(let name, _, _) = call.action { expect(GatheringLimits.isName(name), "a name of \(name.utf8.count) bytes") }
            if case .onlineStatus(let hook) = call.action { expect(!hook.isSigned(secret: "s", nowMs: 2_000), "a forged signature") }
            guard let change = call.input(by: "a", newID: "t1") else { return }
            var room = Classroom(createdAtMs: 0)
            _ = try? room.apply(Classroom.Input.join(id: "a", name: "A", isAudience: false, disableCamera: false), nowMs: 0)
            _ = try? room.apply(Classroom.Input.join(id: "b", name: "B", isAudience: true, disableCamera: false), nowMs: 0)
            let before = room
            do throws(GatheringRefusal) {
                _ = try room.apply(change, nowMs: 1)
            } catch {
                expect(room == before, "a refusal changed something")
            }
        } catch {
            let answer = ClassroomAnswer.refusal(error)
            expect(parsed(answer.text) != nil && ClassroomCode(error) != .ok, "an error that is no answer")
        }
    }
}
