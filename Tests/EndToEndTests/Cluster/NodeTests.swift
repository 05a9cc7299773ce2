import APITestSupport
import Foundation
import PostgresTestSupport
import ServerTestSupport
import TestSupport
import Testing

@testable import EarshotServer

/// Calls and commands about the servers that share a registry.
@Suite struct NodeTests {
    @Test func aServerThatIsAloneHasNone() async throws {
        try await TestServer.run { server in
            let api = try await CheckedAPI(server)
            let nodes = try await api.ok("GET", "nodes")
            #expect(nodes["isShared"].bool == false && nodes["total"].int == 0 && nodes["list"].count == 0)
            let error = try await api.refused(404, "POST", "nodes/b/drain")
            #expect(error["field"].string == "node" && error["value"].string == "b")
            #expect(!(try await api("GET", "metrics").text.contains("earshot_cluster_")))
            try await api.ok("POST", "rooms", #"{"roomId":"cam1"}"#, status: 201)
            let publisher = try await TagClient.publish(to: server, "live/cam1")
            try await server.wait("streams") { $0["list"][0]["node"].isNull && $0["list"].count == 1 }
            #expect(try await api.ok("GET", "sessions")["list"][0]["node"].isNull)
            #expect(try await api.ok("GET", "rooms/cam1")["streams"][0]["node"].isNull)
            await publisher.close()
            let cli = try CLI(server: server.http, token: CLI.tokenFile(server.token, in: URL(fileURLWithPath: server.dataDirectory)))
            let list = try await cli("nodes")
            #expect(list.status == 0 && list.text.isEmpty && list.errors.hasPrefix("no nodes"), "\(list.errors)")
            #expect(try await cli("nodes", "drain", "b").status == 3)
        }
    }
}

/// The same with several nodes.
@Suite(.enabled(if: TestPostgres.isOn, "on PostgreSQL")) struct ClusterNodeTests {
    @Test func allNodesSayTheSame() async throws {
        try await ClusterServers.run { a, b in
            for (server, name) in [(a, "a"), (b, "b")] {
                let api = try await CheckedAPI(server)
                let nodes = try await api.ok("GET", "nodes")
                #expect(nodes["isShared"].bool == true && nodes["total"].int == 2)
                let list = nodes["list"].list
                #expect(list.map(\.["name"].string) == ["a", "b"])
                #expect(list.filter { $0["isSelf"].bool == true }.map(\.["name"].string) == [name])
                try await server.wait("nodes") {
                    $0["list"].list.allSatisfy { $0["state"].string == "running" && ($0["leaseSeconds"].double ?? 0) > 1 }
                }
                try await server.wait("nodes") { $0["list"].list.count { $0["isKeeper"].bool == true } == 1 }
                let page = try await api("GET", "metrics").text
                #expect(page.contains("earshot_cluster_nodes{state=\"running\"} 2\n"), "\(page)")
                for metric in ["keeper", "signal_lag_seconds", "lease_seconds", "clock_ahead_seconds"] {
                    #expect(page.contains("\nearshot_cluster_\(metric) "), "\(metric)")
                }
            }
            // A node that has left.
            try await ClusterServers.join("c", a) { c in try await a.wait("nodes") { $0["total"].int == 3 } }
            try await a.wait("nodes") { $0["list"][2]["state"].string != "running" && $0["list"][2]["leaseSeconds"].double == 0 }
            let api = try await CheckedAPI(a)
            let left = try await api.refused(409, "POST", "nodes/c/drain")
            #expect(left["state"].string != "running" && left["allowed"][0].string == "running", "\(left)")
            let unknown = try await api("POST", "nodes/nobody/drain")
            #expect(unknown.status == 404 && unknown.text.contains("a, b"), "\(unknown.text)")
        }
    }

    /// Streams, sessions and rooms name the node that has the connection, at whatever node one asks for rooms.
    @Test func answersNameTheNode() async throws {
        try await ClusterServers.run { a, b in
            let (one, other) = (try await CheckedAPI(a), try await CheckedAPI(b))
            try await one.ok("POST", "rooms", #"{"roomId":"cam1"}"#, status: 201)
            #expect(try await one.ok("GET", "rooms/cam1")["streams"][0]["node"].isNull, "nobody pushes")
            let publisher = try await TagClient.publish(to: b, "live/cam1")
            try await b.wait("streams") { $0["list"][0]["node"].string == "b" }
            #expect(try await other.ok("GET", "streams?sort=viewers")["list"][0]["node"].string == "b")
            #expect(try await other.ok("GET", "streams/live/cam1")["stream"]["node"].string == "b")
            let session = try await other.ok("GET", "sessions")["list"][0]
            #expect(session["node"].string == "b")
            let id = try session["sessionId"].int.orThrow()
            #expect(try await other.ok("GET", "sessions/\(id)")["node"].string == "b")
            for api in [one, other] {
                #expect(try await api.ok("GET", "rooms")["list"][0]["streams"][0]["node"].string == "b")
                #expect(try await api.ok("GET", "rooms/cam1")["streams"][0]["node"].string == "b")
                #expect(try await api.ok("PATCH", "rooms/cam1", #"{"title":"x"}"#)["streams"][0]["node"].string == "b")
                #expect(try await api.ok("POST", "rooms/cam1/like")["streams"][0]["node"].string == "b")
                #expect(try await api.ok("POST", "rooms/cam1/heartbeat")["streams"][0]["node"].string == "b")
                #expect(try await api.ok("GET", "nodes")["list"].list.map(\.["pushes"].int) == [0, 1])
            }
            await publisher.close()
        }
    }

    @Test func oneNodeDrainsAnother() async throws {
        try await ClusterServers.run { a, b in
            let api = try await CheckedAPI(a)
            let publisher = try await TagClient.publish(to: b, "live/cam1")
            let asked = try await api("POST", "nodes/b/drain", #"{"timeout":300,"tcUrl":"rtmp://other.example/live"}"#)
            #expect(asked.status == 202, "\(asked.text)")
            let data = try asked.json()["data"]
            #expect(data["node"].string == "b" && data["timeout"].double == 300 && data["restart"].bool == false && data["drain"].isNull)
            #expect(data["tcUrl"].string == "rtmp://other.example/live")
            try await b.wait("server") { ($0["drain"]["secondsLeft"].double ?? 0) > 200 && $0["drain"]["pushes"].int == 1 }
            #expect(try await api.ok("GET", "server")["drain"].isNull, "the other one goes on")
            #expect(await b.lines.comes("Draining: nobody new", "token:first at node a"))
            // A second one begins nothing.
            try await api.ok("POST", "nodes/b/drain", status: 202)
            #expect(await b.lines.comes("another node's wish is left out"))
            let id = try asked.json()["requestId"].string.orThrow()
            try await a.wait("audit") { $0["list"].count == 4 }
            let lines = try await api.ok("GET", "audit")["list"].list
            let first = lines.filter { $0["requestId"].string == id }
            #expect(Set(first.compactMap { $0["operation"].string }) == ["drainNode", "drainServer"])
            #expect(first.allSatisfy { $0["object"].string == "node/b" && $0["token"].string == "first" && $0["result"].string == "ok" })
            let others = lines.filter { $0["requestId"].string != id }
            #expect(Set(others.compactMap { $0["result"].string }) == ["ok", "wrong_state"])
            await publisher.close()
        }
    }

    @Test func aNodeDrainsItself() async throws {
        try await ClusterServers.run { a, b in
            let publisher = try await TagClient.publish(to: a, "live/cam1")
            let api = try await CheckedAPI(a)
            let begun = try await api.ok("POST", "nodes/a/drain", #"{"timeout":300}"#, status: 202)
            #expect(begun["drain"]["pushes"].int == 1 && (begun["drain"]["secondsLeft"].double ?? 0) > 290, "\(begun)")
            #expect(try await api.ok("GET", "server")["drain"]["pushes"].int == 1)
            try await api.refused(409, "POST", "nodes/a/drain")
            #expect(try await CheckedAPI(b).ok("GET", "server")["drain"].isNull)
            await publisher.close()
        }
    }

    @Test func theCommandLine() async throws {
        try await ClusterServers.run { a, b in
            let cli = try CLI(server: a.http, token: CLI.tokenFile(a.token, in: URL(fileURLWithPath: a.dataDirectory)))
            let list = try await cli("nodes", "list")
            #expect(list.status == 0 && list.lines.count == 3 && list.lines[0].hasPrefix("NODE"), "\(list.text)\(list.errors)")
            #expect(list.lines[1].hasPrefix("a *") && list.lines[2].hasPrefix("b ") && list.lines[2].contains("running"))
            #expect(try await cli("nodes", "--quiet").lines == ["a", "b"])
            let json = JSON(try JSONSerialization.jsonObject(with: try await cli("nodes", "--json").output))
            #expect(json["list"].list.map(\.["name"].string) == ["a", "b"] && json["isShared"].bool == true)
            let unknown = try await cli("nodes", "drain", "nobody")
            #expect(unknown.status == 3 && unknown.errors.contains("a, b"), "\(unknown.status) \(unknown.errors)")
            let publisher = try await TagClient.publish(to: b, "live/cam1")
            let asked = try await cli("nodes", "drain", "b", "--within", "5m")
            #expect(asked.status == 0 && asked.text == "node b is asked to end\n", "\(asked.text)\(asked.errors)")
            try await b.wait("server") { $0["drain"]["pushes"].int == 1 }
            await publisher.close()
        }
    }
}
