import RoomRegistry
import Support
import Testing

@testable import ControlAPI

/// Calls that are sent on to the node that has what they are about.
@Suite struct RouteHomeTests {
    /// Every name is a call's, and its path names a thing. So a call that is renamed, or gets other parameters, is still sent on.
    @Test func allNamesAreCalls() {
        let routes = APIRoute.all.filter { APIRoute.homedNames.contains($0.name) }
        #expect(Set(routes.map(\.name)) == APIRoute.homedNames)
        for route in routes {
            let path = route.parts.compactMap { part -> JSONValue.Member? in
                guard case .parameter(let name) = part else { return nil }
                return JSONValue.Member(name: name, value: "7")
            }
            #expect(route.thing(path) != nil, "\(route.name)")
        }
    }

    /// What ends or shows something that only one node has must not be left out.
    @Test func callsAboutOneConnectionOrStreamAreSentOn() {
        let parameters: Set<String> = ["sessionId", "recordingId", "snapshotId", "gatheringId"]
        for route in APIRoute.all {
            let isOfOne = route.parts.contains { if case .parameter(let name) = $0 { parameters.contains(name) } else { false } }
            // What the store knows of it, every node can tell.
            guard isOfOne, route.name != "getRecording" else { continue }
            #expect(APIRoute.homedNames.contains(route.name), "\(route.name)")
        }
    }

    @Test func idsOfSessionsNameTheirNode() throws {
        let route = try #require(APIRoute.all.first { $0.name == "getSession" })
        func node(_ id: String) -> NodeThing? { route.thing([JSONValue.Member(name: "sessionId", value: .string(id))]) }
        #expect(node("2199023255553") == .node(2))
        #expect(node("7") == .node(0))
        #expect(node("x") == nil && node("-1") == nil && node("18446744073709551616") == nil)
    }
}
