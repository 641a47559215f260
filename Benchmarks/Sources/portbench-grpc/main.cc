// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the swift-message-port authors

// A side of portbench's contestant "gRPC": `server ADDRESS SIZE` answers unary calls of SIZE bytes with 64, `client
// ADDRESS SIZE` makes as many as portbench orders, and reports how long they took. Descriptor 3 is a socket to
// portbench, whose end is the end of this process.

#include <google/protobuf/wrappers.pb.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
// What serializes messages of protobuf; generated code includes it too.
#if __has_include(<grpcpp/impl/proto_utils.h>)
#include <grpcpp/impl/proto_utils.h>
#else
#include <grpcpp/impl/codegen/proto_utils.h>
#endif

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using Bytes = google::protobuf::BytesValue;

constexpr int orders = 3;
constexpr size_t answer_size = 64;
constexpr char method[] = "/org.example.portbench.Bench/Request";

int64_t now() {
    using namespace std::chrono;
    return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

void say(const void *bytes, size_t length) {
    const char *next = static_cast<const char *>(bytes);
    while (length > 0) {
        ssize_t sent = send(orders, next, length, MSG_NOSIGNAL);
        if (sent <= 0) _exit(1);
        next += sent;
        length -= static_cast<size_t>(sent);
    }
}

Bytes make_bytes(size_t size) {
    Bytes bytes;
    bytes.set_value(std::string(size, '\0'));
    return bytes;
}

// MARK: - the server

/// A call: it is accepted, its request is read, and its answer is written. Each step ends with an event of the queue.
class Call {
  public:
    Call(grpc::AsyncGenericService &service, grpc::ServerCompletionQueue &queue, size_t size)
        : service(service), queue(queue), size(size), stream(&context) {
        service.RequestCall(&context, &stream, &queue, &queue, this);
    }

    /// Does the next step; deletes itself after the last one.
    void advance(bool succeeded) {
        if (!succeeded || step == Step::answered) {
            delete this;
        } else if (step == Step::accepted) {
            new Call(service, queue, size);
            step = Step::read;
            stream.Read(&buffer, this);
        } else {
            step = Step::answered;
            answer();
        }
    }

  private:
    enum class Step { accepted, read, answered };

    void answer() {
        Bytes request, reply = make_bytes(answer_size);
        grpc::ByteBuffer out;
        bool owned;
        auto status = grpc::SerializationTraits<Bytes>::Deserialize(&buffer, &request);
        if (status.ok() && request.value().size() != size) status = {grpc::StatusCode::INVALID_ARGUMENT, "size"};
        if (status.ok()) status = grpc::SerializationTraits<Bytes>::Serialize(reply, &out, &owned);
        if (status.ok()) {
            stream.WriteAndFinish(out, grpc::WriteOptions(), status, this);
        } else {
            stream.Finish(status, this);
        }
    }

    grpc::AsyncGenericService &service;
    grpc::ServerCompletionQueue &queue;
    const size_t size;
    grpc::GenericServerContext context;
    grpc::GenericServerAsyncReaderWriter stream;
    grpc::ByteBuffer buffer;
    Step step = Step::accepted;
};

int serve(const std::string &address, size_t size) {
    grpc::AsyncGenericService service;
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.SetMaxReceiveMessageSize(-1);
    builder.RegisterAsyncGenericService(&service);
    auto queue = builder.AddCompletionQueue();
    auto server = builder.BuildAndStart();
    if (!server) return 1;
    new Call(service, *queue, size);
    std::thread([] {
        char byte;
        recv(orders, &byte, 1, 0);
        _exit(0);
    }).detach();
    say("", 1);
    void *call;
    for (bool succeeded; queue->Next(&call, &succeeded);) static_cast<Call *>(call)->advance(succeeded);
    return 1;
}

// MARK: - the client

class Client {
  public:
    Client(const std::string &address, size_t size) : request(make_bytes(size)), stub(connect(address)) {}

    bool call() {
        grpc::ClientContext context;
        context.set_wait_for_ready(true);
        context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
        auto reader = stub.PrepareUnaryCall(&context, method, request, &queue);
        Bytes reply;
        grpc::Status status;
        reader->StartCall();
        reader->Finish(&reply, &status, this);
        void *tag;
        bool succeeded;
        return queue.Next(&tag, &succeeded) && succeeded && status.ok() && reply.value().size() == answer_size;
    }

  private:
    static std::shared_ptr<grpc::Channel> connect(const std::string &address) {
        grpc::ChannelArguments arguments;
        arguments.SetMaxReceiveMessageSize(-1);
        return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
    }

    const Bytes request;
    grpc::TemplatedGenericStub<Bytes, Bytes> stub;
    grpc::CompletionQueue queue;
};

int serve_orders(const std::string &address, size_t size) {
    Client client(address, size);
    say("", 1);
    int64_t order[2];
    while (recv(orders, order, sizeof order, MSG_WAITALL) == static_cast<ssize_t>(sizeof order)) {
        const int64_t count = order[0];
        std::vector<int64_t> laps(order[1] ? static_cast<size_t>(count) : 0);
        int64_t start = now(), last = start;
        for (int64_t i = 0; i < count; i++) {
            if (!client.call()) return 1;
            if (laps.empty()) continue;
            int64_t time = now();
            laps[static_cast<size_t>(i)] = time - last;
            last = time;
        }
        int64_t time = now() - start;
        say(&time, sizeof time);
        say(laps.data(), laps.size() * sizeof(int64_t));
    }
    // Without the destructors of the library's threads.
    _exit(0);
}

}  // namespace

int main(int count, char **arguments) {
    if (count < 4) return 64;
    const size_t size = std::strtoul(arguments[3], nullptr, 10);
    const bool serves = std::strcmp(arguments[1], "server") == 0;
    return serves ? serve(arguments[2], size) : serve_orders(arguments[2], size);
}
