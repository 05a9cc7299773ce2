import EarshotServer
import RoomRegistry
import Support
import Testing

@testable import ControlAPI
@testable import HTTPAPI

/// Calls that are sent on to the node that has what they are about.
@Suite struct RouteHomeTests {
    /// The path of each such call names the thing that it is about.
    @Test func allPathsNameThings() throws {
        let routes = APIRoute.all.filter { $0.home != nil }
        #expect(routes.count > 20)
        for route in routes {
            let path = route.parts.compactMap { part -> JSONValue.Member? in
                guard case .parameter(let name) = part else { return nil }
                return JSONValue.Member(name: name, value: "7")
            }
            #expect(route.home?.thing(path) != nil, "\(route.name)")
        }
    }

    /// What ends or shows something that only one node has must not be left out.
    @Test func callsAboutOneConnectionOrStreamAreSentOn() {
        let parameters: Set<String> = ["sessionId", "recordingId", "snapshotId", "gatheringId"]
        for route in APIRoute.all {
            let isOfOne = route.parts.contains { if case .parameter(let name) = $0 { parameters.contains(name) } else { false } }
            // What the store knows of it, every node can tell.
            guard isOfOne, !["getRecording", "makeRecordingUrl", "makeSnapshotUrl"].contains(route.name) else { continue }
            #expect(route.home != nil, "\(route.name)")
        }
    }

    @Test func idsOfSessionsNameTheirNode() throws {
        let route = try #require(APIRoute.all.first { $0.name == "getSession" })
        func node(_ id: String) -> NodeThing? { route.home?.thing([JSONValue.Member(name: "sessionId", value: .string(id))]) }
        #expect(node("2199023255553") == .node(2))
        #expect(node("7") == .node(0))
        #expect(node("x") == nil && node("-1") == nil && node("18446744073709551616") == nil)
    }
}
