import Rooms
import Support

@testable import Apps

extension FuzzTarget {
    /// Frames of a browser in a mesh room. What is handed on keeps all of its members and names the sender, and is JSON again.
    static let mesh = FuzzTarget("mesh", maxLength: 2_048) { input in
        var input = input
        let writer = MeshWriter(isDouble: input.byte() & 1 == 1)
        let frame: MeshFrame?
        do throws(MeshFrame.Problem) {
            frame = try MeshFrame.read(String(decoding: input.rest, as: UTF8.self))
        } catch {
            expect(!error.error.field.isEmpty, "a refusal of nothing")
            expect(parsed(writer.error(error.event, code: "invalid", "\(error.error)")) != nil, "an error that is no JSON")
            return
        }
        guard case .direct(let receiver, let name, let data)? = frame else { return }
        expect(["offer", "answer", "ice_candidate"].contains(name) && !receiver.isEmpty, "a frame \(name) to \(receiver)")
        var room = Gathering(limits: GatheringLimits(members: 2, offlineMs: 0))
        let sender = "sender"
        guard (try? room.apply(.connect(id: sender, name: "", role: "", ConnectionID(1)), nowMs: 0)) != nil,
            let member = room.member(sender),
            let text = writer.frame(.directed(from: member, name: name, data: data)), let sent = parsed(text), let out = sent["data"]
        else { fatalError("what was read is not handed on") }
        expect(out["socketId"] == .string(sender), "it names another sender")
        for each in data where each.name != "socketId" { expect(areSame(out[each.name] ?? .null, each.value), "\(each.name) is lost") }
    }

    /// Frames of a channel's member. A refusal names a field; what is accepted is within its limits.
    static let channel = FuzzTarget("channel", maxLength: 2_048) { input in
        do throws(ChannelFrame.Problem) {
            let frame = try ChannelFrame.read(String(decoding: input.rest, as: UTF8.self))
            expect(parsed(ChannelWriter.ack(frame.ref).text) != nil, "an answer that is no JSON")
            switch frame.body {
            case .send(let to, let object, _): expect(object.utf8.count <= 64 && to?.utf8.count ?? 0 <= 64, "words that are too long")
            case .ticketOpen(let to, let kind, _): expect(to.utf8.count <= 64 && kind.utf8.count <= 64, "words that are too long")
            case .command, .queueOffer, .queuePoll, .queueList, .ticketAnswer, .ping: break
            }
        } catch {
            expect(!error.error.field.isEmpty, "a refusal of nothing")
            expect(parsed(ChannelWriter.error(error.ref, code: "invalid", "\(error.error)").text) != nil, "an error that is no JSON")
        }
    }

    /// Frames of a whiteboard's page. A stroke that is accepted is within its limits, and the store's text of it is read as the same one.
    static let board = FuzzTarget("board", maxLength: 2_048) { input in
        do throws(ChannelFrame.Problem) {
            let frame = try BoardFrame.read(String(decoding: input.rest, as: UTF8.self))
            switch frame.body {
            case .draw(let page, let stroke):
                let text = stroke.value.text
                expect((0...1_000).contains(page) && text.utf8.allSatisfy { $0 < 0x80 }, "page \(page), \(text)")
                expect(stroke.points.allSatisfy { (0...10_000).contains($0.x) && (0...10_000).contains($0.y) }, "points off the sheet")
                expect((try? BoardStroke(parsed(text) ?? .null)) == stroke, "a stroke that the store changes")
                expect(parsed(BoardWriter.hello("u", .student, page: page, [(page, text)], more: false)) != nil, "a hello that is no JSON")
            case .clear(let page): expect((0...1_000).contains(page), "page \(page)")
            case .ping: break
            }
        } catch {
            expect(!error.error.field.isEmpty, "a refusal of nothing")
            expect(parsed(ChannelWriter.error(error.ref, code: "invalid", "\(error.error)").text) != nil, "an answer that is no JSON")
        }
    }

    /// Requests of the cloud's API by clients without a key: none is let in, and its parameters are within their limits or refused.
    static let tencent = FuzzTarget("tencent", maxLength: 2_048) { input in
        var input = input
        let kind = input.byte()
        let head = String(decoding: input.pop(Int(input.byte())), as: UTF8.self)
        let rest = input.rest
        let isGet = kind & 1 == 1
        var headers = [(name: "content-type", value: "application/json"), (name: "x-tc-timestamp", value: "1795238581")]
        if kind & 2 == 2 { headers.append((name: "authorization", value: head)) }
        if kind & 4 == 4 { headers.append((name: "x-tc-action", value: "ForbidLiveStream")) }
        let request = TencentRequest(
            method: isGet ? .get : .post, host: "h:1", query: isGet ? String(decoding: rest, as: UTF8.self) : "", headers: headers,
            body: isGet ? [] : rest)
        do throws(TencentError) {
            let signature = try TencentSignature(request)
            do throws(TencentError) {
                try signature.check(request, secret: "a secret that no input knows", nowSeconds: 1_795_238_581)
                fatalError("a stranger's request is let in")
            } catch {
                expect(!error.message.contains("a secret"), "the secret is shown")
            }
            let fields = try signature.fields(request)
            for action in TencentAction.offered {
                guard let read = try? TencentAction(action, fields, domains: []) else { continue }
                if case .forbid(let path, _, let reason) = read {
                    expect(reason.utf8.count <= 2_048 && !path.name.isEmpty && !path.app.contains("/"), "\(path) for \(reason)")
                }
            }
        } catch {
            expect(parsed(TencentAnswer.failure(error, requestID: "r").text) != nil, "an answer that is no JSON")
        }
    }
}

func parsed(_ text: String) -> JSONValue? { try? JSONParser.parse(text.utf8, deepest: JSONParser.deepestAnswer) }
