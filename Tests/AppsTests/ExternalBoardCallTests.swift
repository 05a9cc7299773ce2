import Testing

@testable import Apps
@testable import Support

/// Calls of a whiteboard server, and its answers.
@Suite struct ExternalBoardCallTests {
    @Test func calls() {
        let call = ExternalBoardCall(.create, appID: "a&b", room: "白 1")
        #expect(call.path == "/room/create" && call.body == "appId=a%26b&roomNr=%E7%99%BD%201")
        #expect(ExternalBoardCall(.destroy, appID: "a", room: "r").path == "/room/destroy")
    }

    @Test func answers() throws {
        let create = ExternalBoardCall(.create, appID: "a", room: "r")
        #expect(try create.read(#"{"code":200,"data":"https://wb.example/b.html?k=1"}"#) == "https://wb.example/b.html?k=1")
        let long = "https://wb.example/" + String(repeating: "x", count: ClassroomLimits.boardIDBytes)
        let wrong = [
            "", "x", "{}", #"{"code":"200","data":"https://a/"}"#, #"{"code":500,"data":"https://a/"}"#, #"{"code":200}"#,
            #"{"code":200,"data":7}"#, #"{"code":200,"data":"javascript:alert(1)"}"#, #"{"code":200,"data":"https://a/ b"}"#,
            #"{"code":200,"data":"https://a/\u0000"}"#, #"{"code":200,"data":"\#(long)"}"#,
        ]
        for answer in wrong { self.fails(create, answer, .createBoard) }
        let destroy = ExternalBoardCall(.destroy, appID: "a", room: "r")
        #expect(try destroy.read(#"{"code":200}"#) == nil)
        for answer in ["", #"{"code":404}"#] { self.fails(destroy, answer, .deleteBoard) }
    }

    private func fails(_ call: ExternalBoardCall, _ answer: String, _ code: ClassroomCode) {
        do throws(GatheringRefusal) {
            _ = try call.read(answer)
            Issue.record("\(answer) was taken")
        } catch {
            #expect(ClassroomCode(error) == code, "\(answer)")
        }
    }

    /// Only boards that this server keeps have a page here, however the other server's address looks.
    @Test func keys() throws {
        var room = Classroom(createdAtMs: 0)
        _ = try room.apply(.join(id: "a", name: "Ann", isAudience: false, disableCamera: false), nowMs: 1)
        let key = String(repeating: "0a", count: 16)
        _ = try room.apply(.boardCreate(by: "a", boardID: "http://wb.example/board/\(key)?k=1", service: "n1"), nowMs: 2)
        #expect(room.board(key: key) == nil)
        let again = try Classroom(state: room.state.text, nowMs: 3)
        #expect(again.boards == room.boards && again.boards.first?.service == "n1")
        _ = try room.apply(.boardCreate(by: "a", boardID: "http://here.example/board/\(key)?k=1"), nowMs: 4)
        #expect(room.board(key: key)?.service == nil && room.board(key: key) != nil)
    }
}
