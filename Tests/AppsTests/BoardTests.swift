import Rooms
import Support
import Testing

@testable import Apps

/// Messages that a whiteboard accepts from its pages, and those that it writes.
@Suite struct BoardTests {
    private static let key = String(repeating: "0a", count: 16)

    private static func stroke(_ points: String, color: String = "#112233", width: String = "3") -> String {
        "{\"points\":\(points),\"color\":\"\(color)\",\"width\":\(width)}"
    }

    private static func draw(_ stroke: String, page: String = "0") -> String {
        "{\"type\":\"draw\",\"ref\":7,\"page\":\(page),\"stroke\":\(stroke)}"
    }

    private static func line(_ count: Int) -> String { "[\(Array(repeating: "[1,2]", count: count).joined(separator: ","))]" }

    /// The field that a frame is refused for; empty when it is taken.
    private static func refusal(_ text: String) -> String {
        do throws(ChannelFrame.Problem) {
            _ = try BoardFrame.read(text)
            return ""
        } catch {
            return error.error.field
        }
    }

    @Test func whatIsRead() throws {
        let read = try BoardFrame.read(Self.draw(Self.stroke("[[0,0],[10000,10000],[5,6]]", color: "#AaBbCc", width: "50"), page: "1000"))
        guard case .draw(let page, let stroke) = read.body else {
            Issue.record("\(read)")
            return
        }
        #expect(read.ref == .integer(7) && page == 1_000)
        #expect(stroke.value.text == ##"{"points":[[0,0],[10000,10000],[5,6]],"color":"#aabbcc","width":50}"##)
        #expect(try BoardStroke(stroke.value) == stroke)
        #expect(try BoardFrame.read(#"{"type":"clear","page":3}"#) == BoardFrame(ref: nil, body: .clear(page: 3)))
        #expect(try BoardFrame.read(#"{"type":"ping","ref":"p"}"#) == BoardFrame(ref: "p", body: .ping))
        #expect(Self.refusal(Self.draw(Self.stroke(Self.line(2_000)))) == "")
    }

    /// A stroke with the most points fits into a client's message and into a piece.
    @Test func theLongestStroke() throws {
        let points = "[\(Array(repeating: "[10000,10000]", count: 2_000).joined(separator: ","))]"
        let frame = Self.draw(Self.stroke(points, width: "50"), page: "1000")
        #expect(frame.utf8.count < 32 << 10)
        guard case .draw(let page, let stroke) = try BoardFrame.read(frame).body else { return }
        #expect(BoardWriter.draw(from: "u", page: page, stroke: stroke.value.text).utf8.count < BoardLimits().pieceBytes)
    }

    @Test(arguments: [
        ("", "frame"), ("[]", "frame"), ("{}", "type"), (#"{"type":"erase"}"#, "type"), (#"{"type":"ping","ref":[]}"#, "ref"),
        (#"{"type":"clear"}"#, "page"), (#"{"type":"clear","page":-1}"#, "page"), (#"{"type":"clear","page":1001}"#, "page"),
        (#"{"type":"clear","page":1.5}"#, "page"), (#"{"type":"clear","page":"0"}"#, "page"),
        (#"{"type":"draw","page":0}"#, "stroke"), (#"{"type":"draw","page":0,"stroke":[]}"#, "stroke"),
        (draw(stroke("[[1,2]]")), "stroke.points"), (draw(stroke("[]")), "stroke.points"), (draw(stroke(line(2_001))), "stroke.points"),
        (draw(stroke("7")), "stroke.points"), (draw(stroke("[[1,2],[3]]")), "stroke.points"),
        (draw(stroke("[[1,2],[3,4,5]]")), "stroke.points"), (draw(stroke("[[1,2],[3,-1]]")), "stroke.points"),
        (draw(stroke("[[1,2],[10001,0]]")), "stroke.points"), (draw(stroke("[[1,2],[3,4.5]]")), "stroke.points"),
        (draw(stroke("[[1,2],[3,9223372036854775808]]")), "stroke.points"), (draw(stroke("[[1,2],[\"3\",4]]")), "stroke.points"),
        (draw(stroke("[[1,2],[3,4]]", color: "red")), "stroke.color"), (draw(stroke("[[1,2],[3,4]]", color: "#12345g")), "stroke.color"),
        (draw(stroke("[[1,2],[3,4]]", color: "#1234567")), "stroke.color"), (draw(stroke("[[1,2],[3,4]]", color: "")), "stroke.color"),
        (draw(stroke("[[1,2],[3,4]]", width: "0")), "stroke.width"), (draw(stroke("[[1,2],[3,4]]", width: "51")), "stroke.width"),
        (draw(stroke("[[1,2],[3,4]]", width: "\"3\"")), "stroke.width"),
    ])
    func whatIsRefused(_ frame: String, _ field: String) { #expect(Self.refusal(frame) == field) }

    // MARK: - The sheet

    @Test func itFillsAndIsCleared() throws {
        var limits = BoardLimits()
        limits.bytes = 100
        var sheet = BoardSheet(limits: limits)
        #expect(try sheet.draw(0, bytes: 60) == 1)
        #expect(try sheet.draw(1, bytes: 40) == 2)
        let before = sheet
        #expect {
            _ = try sheet.draw(2, bytes: 1)
        } throws: { error in
            (error as? GatheringRefusal)?.code == "board_full" && "\(error)".contains("Clear a page")
        }
        #expect(sheet == before && sheet.bytes == 100)
        sheet.clear(7)
        #expect(sheet == before)
        sheet.clear(0)
        #expect(sheet.pages == [1: 40])
        #expect(try sheet.draw(1, bytes: 60) == 3, "numbers count on")
        #expect(BoardLimits().bytes == 1_048_576)
    }

    /// Any life: the sum is that of the strokes which are there, and never above the limit.
    @Test(arguments: 0..<20) func anyLife(_ seed: UInt64) {
        var dice = SeededDice(seed)
        var limits = BoardLimits()
        limits.bytes = 1_000
        var sheet = BoardSheet(limits: limits)
        var model: [(page: Int64, bytes: Int)] = []
        var last: Int64 = 0
        for _ in 0..<500 {
            let page = Int64.random(in: 0..<4, using: &dice)
            if Int.random(in: 0..<12, using: &dice) == 0 {
                sheet.clear(page)
                model.removeAll { $0.page == page }
            } else {
                let bytes = Int.random(in: 1...200, using: &dice)
                let fits = model.reduce(0) { $0 + $1.bytes } + bytes <= 1_000
                let number = try? sheet.draw(page, bytes: bytes)
                #expect((number != nil) == fits)
                if let number {
                    #expect(number == last + 1)
                    last = number
                    model.append((page, bytes))
                }
            }
            #expect(sheet.bytes == model.reduce(0) { $0 + $1.bytes } && sheet.bytes <= 1_000)
            // As it is read again from the store.
            #expect(BoardSheet(limits: limits, pages: sheet.pages, last: last) == sheet)
        }
    }

    // MARK: - What is written

    @Test func whatIsWritten() throws {
        let strokes: [BoardWriter.Drawn] = [(0, Self.stroke("[[1,2],[3,4]]")), (2, Self.stroke("[[5,6],[7,8]]"))]
        let hello = try JSONParser.parse(BoardWriter.hello("a\"b", .teacher, page: 4, strokes, more: true).utf8)
        #expect(hello["you"] == ["id": "a\"b", "role": "teacher", "mayDraw": true] && hello["page"] == 4 && hello["more"] == true)
        #expect(hello["type"] == "hello" && hello["strokes"]?.text.contains(#"{"page":2,"stroke":{"points":[[5,6],[7,8]]"#) == true)
        #expect(BoardWriter.strokes([], more: false) == #"{"type":"strokes","strokes":[],"more":false}"#)
        let drawn = try JSONParser.parse(BoardWriter.draw(from: "a", page: 1, stroke: strokes[0].stroke).utf8)
        #expect(drawn["from"] == "a" && drawn["stroke"]?["width"] == 3)
        #expect(BoardWriter.clear(from: "a", page: 1) == #"{"type":"clear","from":"a","page":1}"#)
        #expect(BoardWriter.page(9) == #"{"type":"page","page":9}"#)
        #expect(BoardWriter.role("a", .audience) == #"{"type":"you","you":{"id":"a","role":"audience","mayDraw":false}}"#)
        #expect(BoardWriter.closed("ended") == #"{"type":"closed","reason":"ended"}"#)
        #expect(ClassroomRole.allCases.filter(\.mayDraw) == [.assistant, .teacher])
    }

    @Test func keys() {
        let key = Self.key
        for url in ["http://h:1/board/\(key)?k=1", "https://h/board/\(key)", "http://h/x/board/\(key)?a=/board/no"] {
            #expect(Classroom.Board.key(of: url) == key, "\(url)")
        }
        for url in [
            "", "?", "http://h/board/", "http://h/board/\(key)0", "http://h/\(key)", "http://h/board/\(key.uppercased())",
            "/board/x?\(key)",
        ] {
            #expect(Classroom.Board.key(of: url) == nil, "\(url)")
        }
    }

    /// A board's deletion is stored with the deletion of its strokes, and so is the class's end.
    @Test func whatIsForgotten() throws {
        var room = Classroom(createdAtMs: 0)
        _ = try room.apply(.join(id: "a", name: "A", isAudience: false, disableCamera: false), nowMs: 1)
        let url = "http://h/board/\(Self.key)?k=1"
        _ = try room.apply(.boardCreate(by: "a", boardID: url), nowMs: 1)
        #expect(room.board(key: Self.key)?.id == url && room.board(key: String(repeating: "1", count: 32)) == nil)
        let stored = StoredGathering(id: "class-c", kind: "class", roomID: RoomID(stored: "class-c"), state: "", createdAt: 0)
        let effects = try room.apply(.boardDelete(by: "a", boardID: url), nowMs: 2)
        #expect(GatheringChange(stored, effects).deletedBoards == [Self.key])
        #expect(GatheringChange(stored, try room.apply(.leave(by: "a"), nowMs: 3)).hasEnded)
    }
}
